//! `agtmux history`: how an agent's state has changed.

use agtmux_api::wire::{History, PastState};
use clap::Args;
use jiff::Timestamp;

use super::explain::Named;
use super::pick;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::output;
use crate::render::age;

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The agent: runtime:ID (also one that has ended), %12, its kind where there is one, or pane:TARGET/SESSION/@W/%P
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Only changes since then: a time, or how long ago, as 10m
    #[arg(long, value_parser = super::watch::since_when)]
    since: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: HistoryArgs) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let reference = pick::reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.bytes("/v1/history", &Named { r#ref: &reference, since: args.since }).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let history: History = parse(&answer)?;
    output::lines(&history.items.iter().map(line).collect::<Vec<_>>())?;
    Ok(Exit::Ok)
}

fn line(past: &PastState) -> String {
    let reason = past.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let lasted = past.duration_ms.map_or_else(|| "until now".to_owned(), |ms| format!("for {}", age::short(ms)));
    format!("{}  {}{reason}  {lasted}", past.at, past.state)
}
