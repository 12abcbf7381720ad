//! `agtmux task input`: types text into a task. The text is sent and guarded in the same way as by `agtmux send`.

use agtmux_api::wire::{ActionOutcome, SendReport, TaskInputAction};
use agtmux_client::DaemonClient;
use clap::Args;

use super::session_args::TaskSessionArgs;
use crate::commands::guards::CLIENT_NAME;
use crate::error::CliResult;
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

pub(crate) async fn run(args: TaskInputArgs) -> CliResult {
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
    output::answer(&answer, args.json, |done: &ActionOutcome<SendReport>| {
        let ActionOutcome { pane_id, server, latency_ms, report, .. } = done;
        vec![format!("{pane_id} on {server}: typed {} bytes ({latency_ms} ms)", report.bytes)]
    })
}
