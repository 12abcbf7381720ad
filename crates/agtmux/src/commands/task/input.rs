//! `agtmux task input`: through the one sender, with its guards.

use agtmux_api::wire::{ActionOutcome, SendReport, TaskInputAction};
use clap::Args;

use super::session_args::TaskSessionArgs;
use crate::commands::guards::CLIENT_NAME;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct TaskInputArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// What is typed
    #[arg(long, allow_hyphen_values = true)]
    text: String,
    /// Do not press Enter after it
    #[arg(long)]
    no_enter: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskInputArgs) -> Result<CliExit, CliError> {
    let place = args.session.resolve()?;
    let action = TaskInputAction {
        session: place.session,
        socket: place.socket,
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
        format!("{} on {}: {} bytes were typed ({} ms)", done.pane_id, done.server, done.report.bytes, done.latency_ms);
    output::line(line.as_bytes())?;
    Ok(CliExit::Ok)
}
