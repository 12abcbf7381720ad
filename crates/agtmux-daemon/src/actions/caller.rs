//! Who asks, and whether it is an agent that asks for itself.

use std::ffi::OsString;
use std::path::PathBuf;

use agtmux_agents::{AgentRegistry, ProcessFacts};
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, AuditCaller};
use agtmux_core::ids::PaneId;
use agtmux_core::text;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::socket_of_tmux_variable;

use super::{Actions, audit};
use crate::observe;
use crate::serve::Peer;

/// More ancestors than anybody has.
const MAX_ANCESTORS: usize = 64;

/// What a client calls itself is no place for more.
const MAX_CLIENT_BYTES: usize = 64;

/// Whoever is at the other end of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) peer: Option<Peer>,
    pub(crate) via: &'static str,
    /// It may be anybody of this machine, and cannot be told any more.
    pub(crate) peer_gone: bool,
    /// The process that it asks for, where it names one.
    pub(crate) owner_pid: Option<u32>,
}

/// Who is behind a request.
pub(super) enum CallerOrigin {
    /// Nobody who would ask for itself.
    NotAgent,
    Agent(String),
    /// It has ended, or hides: an agent could be behind it.
    Unknown,
}

impl Actions {
    pub(super) fn caller_record(&self, asker: &RequestCaller, client: Option<&String>) -> AuditCaller {
        let pid = asker.peer.and_then(|peer| peer.pid);
        let processes = self.0.discovery.processes();
        let program = pid.and_then(|pid| processes.process(pid)).map(|process| text::from_bytes(&process.name));
        let client = client.map(|name| audit::redacted_prefix(name, MAX_CLIENT_BYTES));
        AuditCaller { uid: asker.peer.map(|peer| peer.uid), pid, program, via: asker.via.into(), client }
    }

    /// Whether the caller descends from an agent.
    pub(super) async fn caller_origin(&self, asker: &RequestCaller) -> CallerOrigin {
        let Some(peer) = asker.peer else {
            return if asker.peer_gone { CallerOrigin::Unknown } else { CallerOrigin::NotAgent };
        };
        let processes = self.0.discovery.processes();
        let registry = self.0.discovery.registry();
        let line = peer.pid.map(|pid| ancestors(&*processes, pid)).unwrap_or_default();
        if line.is_empty() || line.len() == MAX_ANCESTORS {
            return CallerOrigin::Unknown;
        }
        if let Some(found) = agent_among(&registry, &line) {
            return CallerOrigin::Agent(found);
        }
        if let Some(behind) = self.origin_of_tasks(&*processes, &line) {
            return behind;
        }
        self.agent_of_caller_pane(&*processes, &line).await.map_or(CallerOrigin::NotAgent, CallerOrigin::Agent)
    }

    pub(super) async fn refuse_agents(&self, asker: &RequestCaller, kind: ActionKind) -> Result<(), ApiError> {
        self.refuse_agent_caller(asker, kind.as_str()).await
    }

    /// Unless the settings let them.
    pub(crate) async fn refuse_agents_unless_allowed(&self, asker: &RequestCaller, what: &str) -> Result<(), ApiError> {
        match self.config().actions.allow_from_agents {
            true => Ok(()),
            false => self.refuse_agent_caller(asker, what).await,
        }
    }

    async fn refuse_agent_caller(&self, asker: &RequestCaller, what: &str) -> Result<(), ApiError> {
        let message = match self.caller_origin(asker).await {
            CallerOrigin::NotAgent => return Ok(()),
            CallerOrigin::Agent(agent) => format!("{agent} asked for this, and an agent may not {what} by itself"),
            CallerOrigin::Unknown => "who asks cannot be told any more, and an agent may not ask for itself".into(),
        };
        let error = ApiError::new(ErrorCode::CallerIsAgent, message);
        Err(error.with_hint("run it yourself, or set actions.allow_from_agents in the configuration"))
    }

    /// The agent that asks, or one that could be behind it.
    pub(crate) async fn agent_behind_caller(&self, asker: &RequestCaller) -> Option<String> {
        match self.caller_origin(asker).await {
            CallerOrigin::NotAgent => None,
            CallerOrigin::Agent(agent) => Some(agent),
            CallerOrigin::Unknown => Some("somebody who could not be told".into()),
        }
    }

    /// The process for which something is kept: the one that was named, or the agent behind the request. Whoever else started the one
    /// that asks may be a wrapper that is gone at once, and proves nothing.
    pub(crate) fn owner_process_of(&self, asker: &RequestCaller) -> Option<u32> {
        if asker.owner_pid.is_some() {
            return asker.owner_pid;
        }
        let processes = self.0.discovery.processes();
        let line = ancestors(&*processes, asker.peer?.pid?);
        let facts: Vec<ProcessFacts<'_>> = line.iter().rev().map(observe::process_facts).collect();
        self.0.discovery.registry().identify(&facts, None).map(|found| found.pid)
    }

    /// Whether this process, by its number and its beginning, is the one that asks or one that it descends from.
    pub(crate) fn descends_from(&self, asker: &RequestCaller, (pid, start): (u32, u64)) -> bool {
        let processes = self.0.discovery.processes();
        let line = asker.peer.and_then(|peer| peer.pid).map(|pid| ancestors(&*processes, pid)).unwrap_or_default();
        line.iter().any(|process| (process.pid, process.start) == (pid, start))
    }

    /// One that has left its parents behind still has their environment. While an agent has a pane's terminal, whatever
    /// was started there after it was started by it, unless it descends from something that was there before.
    async fn agent_of_caller_pane(&self, processes: &dyn ProcessTable, line: &[ProcessInfo]) -> Option<String> {
        let place = |process: &ProcessInfo| pane_of_process(processes, process.pid);
        let (socket, pane) = place(line.first()?)?;
        let living = self.0.engine.runtime_in_pane(observe::server_name(&socket), pane).await?;
        // A task is whoever has had it started.
        let living = Some(living).filter(|living| !living.agent_type.is_task())?;
        let is_there = |process: &&ProcessInfo| place(process) == Some((socket.clone(), pane));
        let oldest = line.iter().filter(is_there).map(|process| process.start).min()?;
        (oldest > living.process.start && !living.suspended).then(|| living.agent_type.to_string())
    }
}

/// The pane that a process was started in, as its environment tells.
fn pane_of_process(processes: &dyn ProcessTable, pid: u32) -> Option<(PathBuf, PaneId)> {
    let variable =
        |name: &str| processes.environment_variable(pid, name).and_then(|value: OsString| value.into_string().ok());
    let pane: PaneId = variable("TMUX_PANE")?.parse().ok()?;
    Some((socket_of_tmux_variable(&variable("TMUX")?)?, pane))
}

/// The process and those it descends from, the nearest first.
fn ancestors(processes: &dyn ProcessTable, pid: u32) -> Vec<ProcessInfo> {
    let mut line: Vec<ProcessInfo> = Vec::new();
    let mut next = pid;
    while line.len() < MAX_ANCESTORS && next > 1 {
        let Some(process) = processes.process(next) else { break };
        next = process.ppid;
        line.push(process);
    }
    line
}

fn agent_among(registry: &AgentRegistry, line: &[ProcessInfo]) -> Option<String> {
    let facts: Vec<ProcessFacts<'_>> = line.iter().rev().map(observe::process_facts).collect();
    registry.identify(&facts, None).map(|found| found.agent_type.to_string())
}
