//! Agents that no manifest recognises by their processes, for example because the executable was renamed. A hook of
//! such an agent sends an event from inside the pane, and the event identifies the agent.

use std::collections::HashMap;

use agtmux_agents::{AgentRegistry, ProcessFacts, is_shown_suspended, reporting_process};
use agtmux_core::fleet::{DetectedAgent, Server};
use agtmux_core::ids::{AgentType, Generation, ProcessRef};
use agtmux_tmux::platform::PaneProcesses;

use super::process_watch::{launch_options, process_facts};

/// An event with which an agent identifies itself in a pane where the daemon has found no agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentReport {
    pub(crate) agent_type: AgentType,
    /// The process that sent the event and its ancestors, as the kernel reports them.
    pub(crate) senders: Vec<ProcessRef>,
}

/// The agents of one server in the store, by pane id. Each value begins with the pid of the first process in the pane.
pub(super) type RememberedAgents = HashMap<u32, (u32, AgentType, ProcessRef)>;

/// What the store contains about a server when the daemon starts.
#[derive(Debug, Clone)]
pub(super) struct RememberedServer {
    pub(super) generation: Generation,
    pub(super) agents: RememberedAgents,
}

impl RememberedServer {
    pub(super) fn new(server: &Server) -> Self {
        let agents = server.panes.iter().filter_map(|(id, pane)| {
            let runtime = pane.runtime.as_ref().filter(|runtime| !runtime.agent_type.is_task())?;
            Some((id.0, (pane.pid, runtime.agent_type.clone(), runtime.process)))
        });
        Self { generation: server.generation, agents: agents.collect() }
    }
}

/// What the daemon knows about the agent in one pane from events of that agent.
#[derive(Debug, Default)]
pub(crate) struct ReportedAgent {
    /// A report that has not been compared with the processes of the pane yet.
    new: Option<AgentReport>,
    /// The agent's process, known from an earlier report or from the store. The process counts as an agent until it
    /// ends.
    known: Option<(AgentType, ProcessRef)>,
}

impl ReportedAgent {
    pub(crate) fn known(agent_type: AgentType, process: ProcessRef) -> Self {
        Self { new: None, known: Some((agent_type, process)) }
    }

    pub(super) fn report(&mut self, report: AgentReport) {
        self.new = Some(report);
    }

    /// Finds the agent that has reported itself among the processes of the pane.
    pub(super) fn find(&mut self, registry: &AgentRegistry, tree: &PaneProcesses) -> Option<DetectedAgent> {
        if self.new.is_none() && self.known.is_none() {
            return None;
        }
        let facts: Vec<ProcessFacts<'_>> = tree.processes.iter().map(process_facts).collect();
        let is_alive = |process: &ProcessRef| {
            tree.processes.iter().any(|p| (p.pid, p.start) == (process.pid, process.start) && !p.zombie)
        };
        if let Some(AgentReport { agent_type, senders }) = self.new.take() {
            let pids: Vec<u32> = senders.iter().filter(|sender| is_alive(sender)).map(|sender| sender.pid).collect();
            let found = reporting_process(&facts, tree.foreground_pgrp, &pids);
            let found = found.and_then(|pid| senders.into_iter().find(|sender| sender.pid == pid));
            self.known = found.map(|process| (agent_type, process)).or(self.known.take());
        }
        self.known = self.known.take().filter(|(_, process)| is_alive(process));
        let (agent_type, process) = self.known.as_ref()?;
        registry.agent(agent_type.as_str())?;
        let suspended = is_shown_suspended(&facts, tree.foreground_pgrp, process.pid)?;
        let info = tree.processes.iter().find(|info| info.pid == process.pid)?;
        let launch = launch_options(registry, agent_type, info, tree);
        Some(DetectedAgent { agent_type: agent_type.clone(), process: *process, suspended, launch })
    }
}
