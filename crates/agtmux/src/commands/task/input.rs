//! `agtmux task input`: types text into a task, with the same sender and guards as `agtmux send`.

use agtmux_api::wire::{ActionOutcome, SendReport, TaskInputAction};
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use super::session_args::TaskSessionArgs;
use crate::commands::guards::CLIENT_NAME;
use crate::error::{CliError, CliExit};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct TaskInputArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by name or window id
    task: String,
    /// The text to type
    #[arg(long, allow_hyphen_values = true)]
    text: String,
    /// Do not press Enter after the text
    #[arg(long)]
    no_enter: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskInputArgs) -> Result<CliExit, CliError> {
    let task_session = args.session.resolve()?;
    let action = TaskInputAction {
        session: task_session.session,
        socket: task_session.socket,
        task: args.task,
        text: args.text,
        no_enter: args.no_enter,
        client: Some(CLIENT_NAME.into()),
    };
    let answer = DaemonClient::from_env()?.act("/v1/tasks/input", &action).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let done: ActionOutcome<SendReport> = parse(&answer)?;
    let line =
        format!("{} on {}: typed {} bytes ({} ms)", done.pane_id, done.server, done.report.bytes, done.latency_ms);
    output::line(line.as_bytes())?;
    Ok(CliExit::Ok)
}
