//! Identifies the caller of a request, and determines whether the caller descends from an agent.

use std::ffi::OsString;
use std::path::PathBuf;

use agtmux_agents::ProcessFacts;
use agtmux_api::config::AgentAction;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::AuditCaller;
use agtmux_core::ids::PaneId;
use agtmux_core::text;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::ancestry::{agent_among, ancestors};
use super::origin::{CallerOrigin, UnknownOrigin};
use super::{Actions, audit};
use crate::observe;
use crate::serve::Peer;

/// A client may send a name for itself. At most this many bytes of the name are recorded.
const MAX_CLIENT_BYTES: usize = 64;

/// The process that sent a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) peer: Option<Peer>,
    pub(crate) via: &'static str,
    /// Whether the peer closed its connection before it could be identified. If so, the caller may be any local
    /// process.
    pub(crate) peer_gone: bool,
    /// The pid of the process that the caller acts for, if the caller names one.
    pub(crate) owner_pid: Option<u32>,
    /// The name that the caller gives itself in a header.
    pub(crate) client: Option<String>,
}

/// The agent behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentBehindCaller {
    pub(crate) name: String,
    /// The caller could not be identified. It may also be a person, for example through a key binding of tmux.
    pub(crate) is_assumed: bool,
}

impl Actions {
    pub(super) fn caller_record(&self, caller: &RequestCaller, client: Option<&String>) -> AuditCaller {
        let pid = caller.peer.and_then(|peer| peer.pid);
        let processes = self.0.discovery.processes();
        let program = pid.and_then(|pid| processes.process(pid)).map(|process| text::from_bytes(&process.name));
        let client = client.or(caller.client.as_ref()).map(|name| audit::redacted_prefix(name, MAX_CLIENT_BYTES));
        AuditCaller { uid: caller.peer.map(|peer| peer.uid), pid, program, via: caller.via.into(), client }
    }

    /// Determines whether the caller is an agent, or was started by one.
    pub(super) async fn caller_origin(&self, caller: &RequestCaller) -> CallerOrigin {
        let origin = match (caller.peer, caller.peer_gone) {
            (Some(Peer { pid: Some(pid), .. }), _) => self.origin_of_process(pid).await,
            (None, false) => CallerOrigin::NotAgent,
            (Some(Peer { pid: None, .. }), _) | (None, true) => CallerOrigin::Unknown(UnknownOrigin::Ended),
        };
        match origin {
            CallerOrigin::Unknown(_) if self.config().actions.allow_from_unknown => CallerOrigin::NotAgent,
            origin => origin,
        }
    }

    /// Refuses callers that are agents, unless `actions.allow_from_agents` allows everything.
    pub(crate) async fn refuse_agents_unless_allowed(&self, caller: &RequestCaller, what: &str) -> ApiResult<()> {
        if self.config().actions.allow_from_agents.all() {
            return Ok(());
        }
        self.refuse_agents(caller, what).await
    }

    /// Refuses callers that are agents, unless `actions.allow_from_agents` allows this action.
    pub(crate) async fn refuse_agents_unless_listed(
        &self,
        caller: &RequestCaller,
        action: AgentAction,
        what: &str,
    ) -> ApiResult<()> {
        if self.config().actions.allow_from_agents.allows(action) {
            return Ok(());
        }
        self.refuse_agents(caller, what).await
    }

    async fn refuse_agents(&self, caller: &RequestCaller, what: &str) -> ApiResult<()> {
        let (message, hint) = match self.caller_origin(caller).await {
            CallerOrigin::NotAgent => return Ok(()),
            CallerOrigin::Agent(agent) => (
                format!("the caller is an agent ({agent}), and agents may not {what}"),
                "run the command yourself, or set actions.allow_from_agents in the configuration",
            ),
            CallerOrigin::Unknown(why) => {
                (format!("the caller could be an agent, and agents may not {what}: {why}"), why.hint())
            }
        };
        Err(ApiError::new(ErrorCode::CallerIsAgent, message).with_hint(hint))
    }

    /// The agent that the caller is or that started the caller. `None` if there is no such agent. A caller that cannot
    /// be identified counts as an agent.
    pub(crate) async fn agent_behind_caller(&self, caller: &RequestCaller) -> Option<AgentBehindCaller> {
        let (name, is_assumed) = match self.caller_origin(caller).await {
            CallerOrigin::NotAgent => return None,
            CallerOrigin::Agent(agent) => (agent, false),
            CallerOrigin::Unknown(_) => ("an unidentified caller".into(), true),
        };
        Some(AgentBehindCaller { name, is_assumed })
    }

    /// The process that owns the task sessions that the caller creates. This is the process named in the request,
    /// otherwise the agent among the caller's ancestors.
    ///
    /// No other ancestor becomes the owner, because it may be a short-lived wrapper.
    pub(crate) fn owner_process_of(&self, caller: &RequestCaller) -> Option<u32> {
        if caller.owner_pid.is_some() {
            return caller.owner_pid;
        }
        let processes = self.0.discovery.processes();
        let ancestry = ancestors(&*processes, caller.peer?.pid?);
        let facts: Vec<ProcessFacts<'_>> = ancestry.iter().rev().map(observe::process_facts).collect();
        self.0.discovery.registry().identify(&facts, None).map(|found| found.pid)
    }

    /// Whether the process with this pid and start time is the caller or one of its ancestors.
    pub(crate) fn descends_from(&self, caller: &RequestCaller, (pid, start): (u32, u64)) -> bool {
        let processes = self.0.discovery.processes();
        let ancestry = caller.peer.and_then(|peer| peer.pid).map(|pid| ancestors(&*processes, pid)).unwrap_or_default();
        ancestry.iter().any(|process| (process.pid, process.start) == (pid, start))
    }

    /// Whether the process with this pid and start time is the caller or one of its ancestors, and no agent is between
    /// them. An agent that the process has started acts for itself.
    pub(crate) fn acts_for(&self, caller: &RequestCaller, (pid, start): (u32, u64)) -> bool {
        let processes = self.0.discovery.processes();
        let ancestry = caller.peer.and_then(|peer| peer.pid).map(|pid| ancestors(&*processes, pid)).unwrap_or_default();
        let owner = ancestry.iter().position(|process| (process.pid, process.start) == (pid, start));
        owner.is_some_and(|at| agent_among(&self.0.discovery.registry(), &ancestry[..at]).is_none())
    }

    /// The agent in the pane where the caller was started, if the agent may have started the caller.
    ///
    /// A daemonized process has lost its parents, but its environment still names the pane. Such a caller counts as
    /// started by the agent in the foreground of that pane, unless the caller or one of its remaining ancestors was
    /// started in the pane before the agent.
    pub(super) async fn agent_of_caller_pane(
        &self,
        processes: &dyn ProcessTable,
        ancestry: &[ProcessInfo],
    ) -> Option<String> {
        let pane_of = |process: &ProcessInfo| pane_of_process(processes, process.pid);
        let (socket, pane) = pane_of(ancestry.first()?)?;
        let agent = self.0.engine.runtime_in_pane(observe::server_name(&socket), pane).await?;
        // The origin of a task is checked in `origin_of_tasks`.
        let agent = Some(agent).filter(|agent| !agent.agent_type.is_task())?;
        let is_there = |process: &&ProcessInfo| pane_of(process) == Some((socket.clone(), pane));
        let oldest = ancestry.iter().filter(is_there).map(|process| process.start).min()?;
        (oldest > agent.process.start && !agent.suspended).then(|| agent.agent_type.to_string())
    }
}

/// The tmux socket and the pane in which a process was started, read from its environment.
fn pane_of_process(processes: &dyn ProcessTable, pid: u32) -> Option<(PathBuf, PaneId)> {
    let variable =
        |name: &str| processes.environment_variable(pid, name).and_then(|value: OsString| value.into_string().ok());
    let pane: PaneId = variable("TMUX_PANE")?.parse().ok()?;
    Some((socket_of_tmux_variable(&variable("TMUX")?)?, pane))
}
