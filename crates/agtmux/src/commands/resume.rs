//! `agtmux resume`: restarts an agent that has ended.

use agtmux_api::wire::{ActionOutcome, ResumeAction, ResumeReport};
use agtmux_client::DaemonClient;
use agtmux_core::sanitize;
use clap::Args;

use super::guards::GuardArgs;
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The agent starts in its old pane and its old directory. The pane must be dead or show a shell \
    prompt. `agtmux audit` shows the runtime:ID of earlier agents.\n\n\
    Example:\n  agtmux resume %12"
)]
#[command(mut_arg("reference", |arg| arg.help("The ended agent: its pane (%12, work:1.2), its name, its runtime:ID, or its type or session if only one matches")))]
#[command(mut_arg("if_runtime", |arg| arg.help("Fail unless the last agent in the pane had this runtime_id")))]
// Hide --if-state and --if-dialog: an agent that has ended has no state and no dialog.
#[command(mut_arg("if_state", |arg| arg.hide(true)), mut_arg("if_dialog", |arg| arg.hide(true)))]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<ResumeArgs>) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.unresolved()?;
    let reference = guards.r#ref.clone();
    let answer = daemon.act("/v1/actions/resume", &ResumeAction { guards }).await?;
    let done = output::parsed_answer(&answer, args.json, |done| vec![outcome_line(done)])?;
    if done.report.resumed_runtime_id.is_some() {
        return Ok(());
    }
    Err(CliError::failed("the agent did not start")
        .because(format!("the command was: {}", done.report.command))
        .hint(format!("agtmux view-output {reference}")))
}

fn outcome_line(done: &ActionOutcome<ResumeReport>) -> String {
    let ResumeReport { command, resumed_runtime_id, .. } = &done.report;
    let started = resumed_runtime_id.as_ref().map(|id| format!(": started as runtime:{id}")).unwrap_or_default();
    let line = format!("{} on {}: {command}{started} ({} ms)", done.pane_id, done.server_label(), done.latency_ms);
    sanitize::for_terminal(&line)
}
