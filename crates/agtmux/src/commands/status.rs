//! `agtmux status`: prints one line for a status bar. It must be fast and never start the daemon.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ListQuery, ListSummary, TargetError};
use agtmux_client::{ClientError, DaemonClient, parse};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::CliResult;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

/// The parts of the response of `/v1/panes` that `status` needs: all except the panes.
#[derive(Debug, Serialize, Deserialize)]
struct StatusSummary {
    schema_version: u32,
    generated_at: Timestamp,
    summary: ListSummary,
    partial: bool,
    target_errors: Vec<TargetError>,
}

pub(crate) async fn run(json: bool) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let bytes = match daemon.api.get_bytes("/v1/panes", &ListQuery::default()).await {
        Err(error @ ClientError::NotRunning(_)) => {
            print_off(json)?;
            return Err(error.into());
        }
        answer => answer?,
    };
    let overview: StatusSummary = parse(&bytes)?;
    if json {
        return output::json(&overview);
    }
    output::styled_lines(&[one_line(&overview, StdoutTerminal::detect().colour)])
}

/// Says that no daemon runs. A status bar shows stdout only.
fn print_off(json: bool) -> CliResult {
    if json { output::json(&json!({"schema_version": SCHEMA_VERSION, "daemon": "off"})) } else { output::line("off") }
}

fn one_line(overview: &StatusSummary, colour: bool) -> String {
    let counts = render::counts(&overview.summary.by_state, colour);
    let counts = if counts.is_empty() { "no agents".to_owned() } else { counts };
    // Mark the counts when a target could not be read.
    if overview.partial { counts + " · incomplete" } else { counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_ignored_and_partial_counts_are_marked() {
        let json = br#"{"schema_version":1,"generated_at":"2026-11-15T09:00:00Z","filters":{"x":1},
            "summary":{"by_state":{"running":1,"idle":0},"by_agent":{},"by_target":{}},
            "partial":true,"target_errors":[],"items":[{"anything":[]}]}"#;
        let overview: StatusSummary = parse(json).expect("readable");
        assert_eq!(one_line(&overview, false), "1 running · incomplete");
    }
}
