//! `agtmux resume`: an agent that has ended, again.

use agtmux_api::wire::{ActionOutcome, ResumeAction, ResumeReport};
use agtmux_core::sanitize;
use clap::Args;

use super::guards::GuardArgs;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "REF is runtime:ID of an agent that has ended (`agtmux history` and `agtmux audit` show it), or the pane \
    whose last agent has ended. Its pane must have a shell that waits for a command, or be dead."
)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<ResumeArgs>) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.unresolved()?;
    let reference = guards.r#ref.clone();
    let answer = daemon.act("/v1/actions/resume", &ResumeAction { guards }).await?;
    let done: ActionOutcome<ResumeReport> = parse(&answer)?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::line(outcome_line(&done).as_bytes())?;
    }
    if done.report.resumed_runtime_id.is_some() {
        return Ok(CliExit::Ok);
    }
    let message =
        CliMessage::new("the agent was not seen to start").because(format!("it was told to: {}", done.report.command));
    Err(CliError::failed(message.hint(format!("agtmux view-output {reference}"))))
}

fn outcome_line(done: &ActionOutcome<ResumeReport>) -> String {
    let ResumeReport { command, resumed_runtime_id, .. } = &done.report;
    let lives = resumed_runtime_id.as_ref().map(|id| format!(": it lives as runtime:{id}")).unwrap_or_default();
    sanitize::for_terminal(&format!(
        "{} on {}: {command}{lives} ({} ms)",
        done.pane_id,
        done.server_label(),
        done.latency_ms
    ))
}
