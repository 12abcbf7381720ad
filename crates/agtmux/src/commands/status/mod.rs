//! `agtmux status`: prints one line for a status bar. It must be fast and never start the daemon.

mod fleet_status;
mod template;

use std::time::Duration;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ListQuery, ListResponse, PaneItem};
use agtmux_client::{ClientError, DaemonClient, parse};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::fleet_follow;
use crate::error::{CliError, CliResult};
use crate::output;
use crate::terminal::StdoutTerminal;
use fleet_status::FleetStatus;
use template::StatusTemplate;

/// How often a line with an age is computed again.
const AGE_STEP: Duration = Duration::from_secs(5);

#[derive(Debug, Default, Args)]
#[command(after_help = "\
TEMPLATE is text with {NAME} for a value, and {NAME?TEXT} for a text that is shown only if the value is neither 0 nor
empty. {{ and }} are braces. Values:
  waiting, error, unseen, running, completed, idle, unknown   how many agents are in this state
  agents                                       how many agents there are
  summary                                      the counts that are not 0, as without --format
  next_agent, next_name, next_place, next_session, next_target, next_asks, next_age
                                               the agent that has waited for longest
  daemon                                       `on` or `off`
tmux expands what #() prints: every # of a value is doubled, so that it stays text. Text of the template stays as it is
and may contain styles, such as #[fg=red].

Examples:
  agtmux status
  agtmux status --format '{waiting?{waiting} waiting: {next_agent} }{running} running'
  tmux set -g status-right \"#(agtmux status --follow --format '{waiting?#[fg=yellow]{waiting} waiting}')\"")]
pub(crate) struct StatusArgs {
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line whenever the line changes, until the reader closes the pipe. Prints \"off\" while no daemon runs
    #[arg(long)]
    follow: bool,
    /// Print this template
    #[arg(long, value_name = "TEMPLATE", value_parser = StatusTemplate::parse, conflicts_with = "json")]
    format: Option<StatusTemplate>,
}

pub(crate) async fn run(args: StatusArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let form = StatusForm { json: args.json, template: args.format };
    if args.follow {
        let age_step = form.has_age().then_some(AGE_STEP);
        let mut before = None;
        return fleet_follow::follow(&daemon, age_step, |list, now| {
            let line = form.line(&list.map_or_else(FleetStatus::off, FleetStatus::of_list), now)?;
            let without_time = Some(form.without_time(&line));
            if without_time == before {
                return Ok(());
            }
            before = without_time;
            form.print_line(&line)
        })
        .await;
    }
    let is_short = form.template.is_none();
    let bytes = match daemon.api.get_bytes("/v1/panes", &ListQuery::default()).await {
        Err(error @ ClientError::NotRunning(_)) => {
            form.print(&FleetStatus::off())?;
            return Err(error.into());
        }
        answer => answer?,
    };
    let status = match is_short {
        // The panes are not needed.
        true => FleetStatus::of_summary(parse(&bytes)?),
        false => FleetStatus::of_list(parse::<ListResponse<PaneItem>>(&bytes)?),
    };
    form.print(&status)
}

/// How to print the status.
struct StatusForm {
    json: bool,
    template: Option<StatusTemplate>,
}

impl StatusForm {
    /// The line of the status, without its newline.
    fn line(&self, status: &FleetStatus, now: Timestamp) -> CliResult<String> {
        let written = |text: serde_json::Result<String>| text.map_err(|error| CliError::io("write JSON", error));
        match (&self.template, &status.summary) {
            (Some(template), _) => Ok(template.line(status, now)),
            (None, None) if self.json => {
                written(serde_json::to_string(&json!({"schema_version": SCHEMA_VERSION, "daemon": "off"})))
            }
            (None, Some(summary)) if self.json => written(serde_json::to_string(summary)),
            (None, _) => Ok(status.one_line(!self.json && StdoutTerminal::detect().colour)),
        }
    }

    fn print(&self, status: &FleetStatus) -> CliResult {
        self.print_line(&self.line(status, Timestamp::now())?)
    }

    fn print_line(&self, line: &str) -> CliResult {
        if self.json { output::json_document(line) } else { output::styled_lines(&[line.to_owned()]) }
    }

    /// The line as it is compared with later ones. The time at which JSON was generated is no change.
    fn without_time(&self, line: &str) -> String {
        let mut value: serde_json::Value = match serde_json::from_str(line) {
            Ok(value) if self.json => value,
            _ => return line.to_owned(),
        };
        if let Some(fields) = value.as_object_mut() {
            fields.remove("generated_at");
        }
        value.to_string()
    }

    /// Whether the line changes while the agents do not.
    fn has_age(&self) -> bool {
        self.template.as_ref().is_some_and(StatusTemplate::has_age)
    }
}
