//! The agents and tmux servers of this host. Actions use them to find out whether their caller is an agent.

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{ProcessRef, ServerKey, TargetName};

use super::Engine;
use crate::actions::ContainingPane;

/// The agents that run on this host, and the tmux server and the pane that contain a given process.
#[derive(Debug, Default)]
pub(crate) struct LocalAgents {
    pub(crate) agents: Vec<ProcessRef>,
    /// The process ids of all agents and tmux servers.
    pub(crate) pids: Vec<u32>,
    /// The index of the nearest tmux server among the ancestors of the given process.
    pub(crate) server_at: Option<usize>,
    /// The key of that tmux server.
    pub(crate) server: Option<ServerKey>,
    /// The pane that contains the given process.
    pub(crate) pane: Option<ContainingPane>,
}

impl Engine {
    /// `pids` are the ids of a process and its ancestors. The process itself comes first.
    pub(super) fn local_agents(&self, pids: &[u32]) -> LocalAgents {
        let mut found = LocalAgents::default();
        let target = TargetName::local();
        for (key, server) in self.fleet.servers_on(&target) {
            found.pids.push(server.generation.pid);
            let runtimes = server.panes.values().filter_map(|pane| pane.runtime.as_ref());
            let agents = runtimes.filter(|runtime| !runtime.agent_type.is_task()).map(|runtime| runtime.process);
            found.agents.extend(agents);
            let Some(at) = pids.iter().position(|pid| *pid == server.generation.pid) else { continue };
            // With nested servers, the nearest one decides.
            if found.server_at.is_some_and(|nearest| nearest < at) {
                continue;
            }
            found.server_at = Some(at);
            found.server = Some(key.clone());
            let first = at.checked_sub(1).and_then(|below| pids.get(below));
            let pane = first.and_then(|first| server.panes.iter().find(|(_, pane)| pane.pid == *first));
            found.pane = pane.map(|(id, pane)| ContainingPane {
                key: PaneKey { server: key.clone(), pane: *id },
                sessions: pane.placements.iter().map(|placement| placement.session).collect(),
            });
        }
        let agent_pids: Vec<u32> = found.agents.iter().map(|agent| agent.pid).collect();
        found.pids.extend(agent_pids);
        found
    }
}
