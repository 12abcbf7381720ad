//! `agtmux history`: shows the past states of an agent.

use agtmux_api::wire::{StateHistory, StateHistoryItem};
use agtmux_client::DaemonClient;
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::explain::AgentRefQuery;
use super::pick;
use crate::error::CliResult;
use crate::output;
use crate::render::age;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The agent: its name, type or session, a place (work:1.2), %12, runtime:ID, or pane:TARGET/SESSION/@W/%P. You can
    /// also name an agent that has ended
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Show only changes after this time: a timestamp, or a duration before now, such as 10m
    #[arg(long, value_name = "TIME", value_parser = super::watch::parse_since)]
    since: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: HistoryArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let reference = match args.reference {
        // The reference may name an agent that has ended, which the prompt would not offer. The daemon resolves it.
        Some(given) => given,
        None => pick::resolve_reference(&daemon, None).await?,
    };
    let answer = daemon.get_bytes("/v1/history", &AgentRefQuery { r#ref: &reference, since: args.since }).await?;
    let zone = TimeZone::system();
    let lines = |history: &StateHistory| history.items.iter().map(|past| line(past, &zone)).collect();
    output::answer(&answer, args.json, lines)
}

fn line(past: &StateHistoryItem, zone: &TimeZone) -> String {
    let reason = past.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let lasted =
        past.duration_ms.map_or_else(|| "until now".to_owned(), |ms| format!("for {}", age::short_duration(ms)));
    format!("{}  {}{reason}  {lasted}", age::local_time(past.at, zone), past.state)
}
