//! `agtmux status`: one line for a status bar. It must be quick and must never start anything.

use agtmux_api::wire::{ListQuery, Summary, TargetError};
use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::terminal::Terminal;
use crate::{output, render};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A list of panes without the panes.
#[derive(Debug, Serialize, Deserialize)]
struct Overview {
    schema_version: u32,
    generated_at: Timestamp,
    summary: Summary,
    partial: bool,
    target_errors: Vec<TargetError>,
}

pub(crate) async fn run(args: StatusArgs) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let bytes = daemon.client.get_bytes("/v1/panes", &ListQuery::default()).await?;
    let overview: Overview = parse(&bytes)?;
    if args.json {
        let json = serde_json::to_vec(&overview).map_err(|error| CliError::io("write JSON", error))?;
        output::line(&json)?;
        return Ok(Exit::Ok);
    }
    output::line(one_line(&overview, Terminal::of_stdout().colour).as_bytes())?;
    Ok(Exit::Ok)
}

fn one_line(overview: &Overview, colour: bool) -> String {
    let counts = render::counts(&overview.summary.by_state, colour);
    let counts = if counts.is_empty() { "no agents".to_owned() } else { counts };
    // Numbers that leave something out must not look like the whole truth.
    if overview.partial { counts + " · incomplete" } else { counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_are_not_needed() {
        let json = br#"{"schema_version":1,"generated_at":"2026-11-15T09:00:00Z","filters":{"x":1},
            "summary":{"by_state":{"running":1,"idle":0},"by_agent":{},"by_target":{}},
            "partial":true,"target_errors":[],"items":[{"anything":[]}]}"#;
        let overview: Overview = parse(json).expect("readable");
        assert_eq!(one_line(&overview, false), "1 running · incomplete");
    }
}
