//! Finds out whether a person has used a pane: an attached tmux client showed the pane, and a key was pressed there
//! after the pane's process had started.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use agtmux_tmux::TmuxClient;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};

use super::ancestry::{agent_among, ancestors, own_chain, try_ancestors};
use super::origin::{CallerOrigin, ContainingPane};
use super::{Actions, RequestCaller};

/// The panes that a person has used, each identified by the pid and the start time of its first process.
#[derive(Debug, Default)]
pub(super) struct VisitedPanes(Mutex<HashSet<(u32, u64)>>);

/// When more panes than this are stored, the daemon forgets all of them.
const MAX_VISITED: usize = 10_000;

impl VisitedPanes {
    pub(super) fn contains(&self, process: &ProcessInfo) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(process.pid, process.start))
    }

    pub(super) fn insert(&self, process: &ProcessInfo) {
        let mut visited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if visited.len() >= MAX_VISITED {
            visited.clear();
        }
        visited.insert((process.pid, process.start));
    }
}

impl Actions {
    /// Remembers the caller's pane if a person has used it. Commands such as `agtmux wait` call this while the person
    /// still looks at the pane. The pane may be hidden when a later command in it sends an action.
    pub(crate) async fn note_visit(&self, caller: &RequestCaller) {
        if self.config().actions.allow_from_agents.all() || self.config().actions.allow_from_unknown {
            return;
        }
        let Some(pid) = caller.peer.and_then(|peer| peer.pid) else { return };
        let processes = self.0.discovery.processes();
        let ancestry = ancestors(&*processes, pid);
        let agents = self.0.engine.local_agents(ancestry.iter().map(|process| process.pid).collect()).await;
        let first = agents.server_at.and_then(|at| ancestry.get(at.checked_sub(1)?));
        let (Some(first), Some(pane)) = (first, &agents.pane) else { return };
        if agents.agents.iter().any(|agent| agent.start < first.start) {
            // This call remembers the pane if a person has used it.
            self.is_visited(&*processes, first, pane).await;
        }
    }

    /// Whether a person has used this pane since `first`, the first process of the pane, started.
    pub(super) async fn is_visited(
        &self,
        processes: &dyn ProcessTable,
        first: &ProcessInfo,
        pane: &ContainingPane,
    ) -> bool {
        if self.0.visited_panes.contains(first) {
            return true;
        }
        let Some(access) = self.0.discovery.server_access(&pane.key.server) else { return false };
        let clients = access.tmux.clients().await.unwrap_or_default();
        let started = processes.started_at(first.pid);
        let started = started.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
        for client in clients.iter().filter(|client| is_used_in(client, pane, started)) {
            if self.is_client_of_a_person(processes, client).await {
                self.0.visited_panes.insert(first);
                return true;
            }
        }
        false
    }

    /// Whether a person attached this client, and not an agent. A client that itself runs in a tmux pane counts only if
    /// no agent can have made that pane, or if a person has used that pane.
    pub(super) async fn is_client_of_a_person(&self, processes: &dyn ProcessTable, client: &TmuxClient) -> bool {
        let Ok(ancestry) = try_ancestors(processes, client.pid) else { return false };
        if agent_among(&self.0.discovery.registry(), &ancestry).is_some() {
            return false;
        }
        let agents = self.0.engine.local_agents(ancestry.iter().map(|process| process.pid).collect()).await;
        match agents.server_at.and_then(|at| ancestry.get(at.checked_sub(1)?)) {
            Some(first) => {
                self.0.visited_panes.contains(first)
                    || !self.started_while_an_agent_ran(processes, first, &agents).await
            }
            None => self.origin_outside_tmux(processes, own_chain(&ancestry), &agents).await == CallerOrigin::NotAgent,
        }
    }
}

/// Whether this client shows the pane, and a key was pressed in the client after `started`. tmux counts whole seconds,
/// so a key press in the same second does not count. A client in control mode shows all panes of its session, and needs
/// no key press.
fn is_used_in(client: &TmuxClient, pane: &ContainingPane, started: u64) -> bool {
    match client.control_mode {
        true => pane.sessions.iter().any(|session| session.0 == client.session),
        false => client.pane == pane.key.pane.0 && client.last_key > started,
    }
}

#[cfg(test)]
mod tests {
    use agtmux_core::fleet::PaneKey;
    use agtmux_core::ids::{PaneId, ServerKey, ServerName, SessionId, TargetName};

    use super::*;

    #[test]
    fn only_a_key_pressed_in_the_pane_after_its_start_counts() {
        let server = ServerKey { target: TargetName::local(), server: ServerName::new("default") };
        let pane =
            ContainingPane { key: PaneKey { server, pane: PaneId(7) }, sessions: vec![SessionId(2), SessionId(3)] };
        let typing = TmuxClient { pid: 5, last_key: 101, control_mode: false, session: 2, pane: 7 };
        assert!(is_used_in(&typing, &pane, 100));
        assert!(!is_used_in(&TmuxClient { last_key: 100, ..typing }, &pane, 100), "possibly before the start");
        assert!(!is_used_in(&TmuxClient { pane: 8, ..typing }, &pane, 100), "another pane of the session");
        let control = TmuxClient { control_mode: true, last_key: 1, pane: 8, ..typing };
        assert!(is_used_in(&control, &pane, 100), "a control client shows all panes of its session");
        assert!(!is_used_in(&TmuxClient { session: 9, ..control }, &pane, 100));
    }
}
