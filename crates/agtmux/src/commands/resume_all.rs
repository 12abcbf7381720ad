//! `agtmux resume --all-from`: starts all agents again that ran when tmux or the machine went down.

use agtmux_api::wire::{
    ActionGuards, ActionOutcome, EndedAgentItem, EndedAgentList, EndedAgentQuery, ResumeAction, ResumeReport,
};
use agtmux_client::{DaemonClient, parse};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::guards::CLIENT_NAME;
use super::watch::parse_since;
use crate::error::{CliError, CliExit, CliResult};
use crate::render::age;
use crate::{input, message, output};

/// Tmux servers that end within this time went down together.
const TOGETHER: SignedDuration = SignedDuration::from_mins(5);

/// Which agents to start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumePoint {
    /// The agents that ran when tmux last went down.
    Reboot,
    /// The agents that ran until their tmux server went down, at or after this time.
    Since(Timestamp),
}

pub(crate) fn parse_point(word: &str) -> Result<ResumePoint, String> {
    if word == "reboot" { Ok(ResumePoint::Reboot) } else { parse_since(word).map(ResumePoint::Since) }
}

pub(super) async fn run(point: ResumePoint, yes: bool, json: bool) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let since = match point {
        ResumePoint::Since(at) => Some(at),
        ResumePoint::Reboot => None,
    };
    let query = EndedAgentQuery { since, limit: Some(1000) };
    let list: EndedAgentList = daemon.get("/v1/agents/ended", &query).await?;
    let went_down = agents_that_went_down(list.items, point);
    let (can, cannot): (Vec<EndedAgentItem>, Vec<EndedAgentItem>) =
        went_down.into_iter().partition(|agent| agent.not_resumable.is_none());
    if !json || !yes {
        print_plan(&can, &cannot);
    }
    if can.is_empty() {
        if json {
            output::json(
                &json!({"schema_version": agtmux_api::SCHEMA_VERSION, "resumed": [], "not_resumable": cannot}),
            )?;
        }
        message::line("no agent is to be started");
        return Ok(());
    }
    if !yes {
        let question = format!("start these {} agents again?", can.len());
        input::require_confirmation(&question, "agtmux resume --all-from reboot --yes")?;
    }
    let mut resumed = Vec::new();
    let mut failed = Vec::new();
    // The oldest agent first, so that the windows come back in their order.
    for agent in can.iter().rev() {
        match resume(&daemon, agent).await {
            Ok(done) => {
                if !json {
                    output::line(&format!("{}: started in {}", describe(agent), done.pane_id))?;
                }
                resumed.push(json!({"runtime_id": agent.runtime_id, "pane_id": done.pane_id,
                    "resumed_runtime_id": done.report.resumed_runtime_id}));
            }
            Err(why) => {
                message::line(&format!("{}: {why}", describe(agent)));
                failed.push(json!({"runtime_id": agent.runtime_id, "error": why}));
            }
        }
    }
    if json {
        output::json(&json!({"schema_version": agtmux_api::SCHEMA_VERSION, "resumed": resumed, "failed": failed,
            "not_resumable": cannot}))?;
    }
    if failed.is_empty() { Ok(()) } else { CliExit::Failed.into_result() }
}

async fn resume(daemon: &DaemonClient, agent: &EndedAgentItem) -> Result<ActionOutcome<ResumeReport>, String> {
    let reference = format!("runtime:{}", agent.runtime_id);
    let guards = ActionGuards { r#ref: reference, client: Some(CLIENT_NAME.into()), ..ActionGuards::default() };
    let answer = daemon.act("/v1/actions/resume", &ResumeAction { guards }).await.map_err(|error| error.to_string())?;
    parse(&answer).map_err(|error| error.to_string())
}

/// The agents that ran until their tmux server ended. For a reboot, only those of the last time that this happened.
fn agents_that_went_down(items: Vec<EndedAgentItem>, point: ResumePoint) -> Vec<EndedAgentItem> {
    let mut down: Vec<EndedAgentItem> = items.into_iter().filter(|item| item.ended_with_server).collect();
    let last = down.iter().map(|item| item.ended_at).max();
    if let (ResumePoint::Reboot, Some(last)) = (point, last) {
        down.retain(|item| last.duration_since(item.ended_at) <= TOGETHER);
    }
    down
}

fn print_plan(can: &[EndedAgentItem], cannot: &[EndedAgentItem]) {
    let zone = TimeZone::system();
    for agent in can.iter().rev() {
        let session = agent.session_name.as_deref().unwrap_or("a new session");
        let ended = age::local_time(agent.ended_at, &zone);
        message::line(&format!("start   {} in session {session}, ended {ended}", describe(agent)));
    }
    for agent in cannot {
        let why = agent.not_resumable.as_deref().unwrap_or_default();
        message::line(&format!("cannot  {}: {why}", describe(agent)));
    }
}

fn describe(agent: &EndedAgentItem) -> String {
    let name = agent.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("{}{name} in {}", agent.agent_type, agent.cwd.as_deref().unwrap_or("an unknown directory"))
}

/// `agtmux list --ended`: the agents that have ended, the newest last.
pub(super) async fn list_ended(json: bool) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let list: EndedAgentList = daemon.get("/v1/agents/ended", &EndedAgentQuery::default()).await?;
    if json {
        return output::json(&list);
    }
    if list.items.is_empty() {
        return Err(CliError::failed("no agent has ended since agtmux began to watch").hint("agtmux list panes"));
    }
    let zone = TimeZone::system();
    let line = |agent: &EndedAgentItem| {
        let how = if agent.ended_with_server { "  with its tmux server" } else { "" };
        let state = agent.not_resumable.as_ref().map(|why| format!("  (cannot be resumed: {why})")).unwrap_or_default();
        format!(
            "{}  {}  runtime:{}{how}{state}",
            age::local_time(agent.ended_at, &zone),
            describe(agent),
            agent.runtime_id
        )
    };
    output::lines(list.items.iter().rev().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(second: i64, ended_with_server: bool) -> EndedAgentItem {
        let at = Timestamp::from_second(second).expect("a time");
        EndedAgentItem {
            runtime_id: second.to_string(),
            agent_type: "otto".into(),
            name: None,
            session: None,
            cwd: None,
            started_at: at,
            ended_at: at,
            session_name: None,
            window_name: None,
            arguments: Vec::new(),
            ended_with_server,
            not_resumable: None,
        }
    }

    #[test]
    fn a_reboot_is_the_last_time_that_servers_went_down_together() {
        let items = || vec![ended(9000, false), ended(8000, true), ended(7900, true), ended(1000, true)];
        let ids =
            |point| agents_that_went_down(items(), point).into_iter().map(|item| item.runtime_id).collect::<Vec<_>>();
        assert_eq!(ids(ResumePoint::Reboot), ["8000", "7900"]);
        assert_eq!(ids(ResumePoint::Since(Timestamp::UNIX_EPOCH)), ["8000", "7900", "1000"]);
        assert!(parse_point("reboot") == Ok(ResumePoint::Reboot) && parse_point("soonish").is_err());
    }
}
