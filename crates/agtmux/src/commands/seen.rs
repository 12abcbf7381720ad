//! `agtmux seen`: marks a completed agent as seen.

use agtmux_api::wire::{SeenAction, SeenReport};
use agtmux_client::DaemonClient;
use clap::Args;

use super::pick;
use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct SeenArgs {
    /// The agent: its name, type or session, a place (work:1.2, work:editor), %12, @3, runtime:ID, or
    /// pane:TARGET/SESSION/@W/%P. If REF is omitted or several agents match, agtmux asks you to choose
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: SeenArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let reference = pick::resolve_reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.act("/v1/actions/seen", &SeenAction { r#ref: reference }).await?;
    output::answer(&answer, args.json, |seen| vec![outcome_line(seen)])
}

fn outcome_line(seen: &SeenReport) -> String {
    let what = if seen.was_unseen { "marked as seen" } else { "was already seen" };
    format!("{} on {}: {what}", seen.pane_id, seen.server_label())
}
