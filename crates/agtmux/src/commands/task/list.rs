//! `agtmux task list`: lists the tasks of a session.

use agtmux_api::wire::TaskList;
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use super::session_args::TaskSessionArgs;
use crate::error::CliResult;
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

#[derive(Debug, Args)]
pub(crate) struct TaskListArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskListArgs) -> CliResult {
    let task_session = args.session.resolve()?;
    let answer = DaemonClient::from_env()?.get_bytes("/v1/tasks", &task_session).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let list: TaskList = parse(&answer)?;
    if list.tasks.is_empty() {
        let message = CliMessage::new(format!("session '{}' has no tasks", task_session.session));
        message.hint("agtmux task run NAME 'COMMAND'").print_stderr();
        return Ok(());
    }
    output::styled_lines(&render::tasks(&list.tasks).lines(&StdoutTerminal::detect()))
}
