//! `agtmux history`: shows the past states of an agent.

use agtmux_api::wire::{StateHistory, StateHistoryItem};
use agtmux_client::DaemonClient;
use clap::Args;
use jiff::Timestamp;

use super::explain::AgentRefQuery;
use super::pick;
use crate::error::CliResult;
use crate::output;
use crate::render::age;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The agent: %12, runtime:ID (also of an ended agent), pane:TARGET/SESSION/@W/%P, or its name, type or session if
    /// only one agent matches
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Show only changes since this time, or since this long ago, such as 10m
    #[arg(long, value_name = "TIME", value_parser = super::watch::parse_since)]
    since: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: HistoryArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let reference = pick::resolve_reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.get_bytes("/v1/history", &AgentRefQuery { r#ref: &reference, since: args.since }).await?;
    output::answer(&answer, args.json, |history: &StateHistory| history.items.iter().map(line).collect())
}

fn line(past: &StateHistoryItem) -> String {
    let reason = past.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let lasted =
        past.duration_ms.map_or_else(|| "until now".to_owned(), |ms| format!("for {}", age::short_duration(ms)));
    format!("{}  {}{reason}  {lasted}", past.at, past.state)
}
