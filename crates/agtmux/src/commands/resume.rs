//! `agtmux resume`: restarts an agent that has ended.

use agtmux_api::wire::{ActionOutcome, ResumeAction, ResumeReport};
use agtmux_client::DaemonClient;
use agtmux_core::sanitize;
use clap::Args;

use super::guards::GuardArgs;
use super::resume_all::{self, ResumePoint, parse_point};
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The agent starts in its old directory and its old pane, which must be dead or show a shell prompt. \
    If the pane is gone, the agent starts in a new window of its old session. A session that runs already is not started \
    again. `agtmux list --ended` shows the runtime:ID of earlier agents.\n\n\
    Examples:\n  agtmux resume %12\n  agtmux resume --all-from reboot"
)]
#[command(mut_arg("reference", |arg| arg.help("The ended agent: its pane (%12, work:1.2), its name, its runtime:ID, or its type or session if only one matches")))]
#[command(mut_arg("if_runtime", |arg| arg.help("Fail unless the last agent in the pane had this runtime_id")))]
// Hide --if-state and --if-dialog: an agent that has ended has no state and no dialog.
#[command(mut_arg("if_state", |arg| arg.hide(true)), mut_arg("if_dialog", |arg| arg.hide(true)))]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Start all agents again that ran until their tmux server went down: the last time (`reboot`), or since a time (such
    /// as 2h or 2026-11-15T09:00:00Z). Shows the plan and asks
    #[arg(long, value_name = "WHEN", value_parser = parse_point, conflicts_with = "reference")]
    all_from: Option<ResumePoint>,
    /// With --all-from: do not ask
    #[arg(long, requires = "all_from")]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<ResumeArgs>) -> CliResult {
    if let Some(point) = args.all_from {
        return resume_all::run(point, args.yes, args.json).await;
    }
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
