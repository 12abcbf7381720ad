//! The panes in which the bridge last saw agents.

use std::collections::BTreeMap;

use agtmux_api::wire::{PaneIdentity, PaneItem};

/// The identity of a pane that has changed, and its new item. The item is `None` if the pane is gone.
pub(super) type PaneChange = (PaneIdentity, Option<PaneItem>);

/// The panes of agents whose native session is known. A native session can be open in several panes, and a pane can be
/// listed in several tmux sessions.
#[derive(Debug, Default)]
pub(super) struct AgentPanes(BTreeMap<PaneIdentity, PaneItem>);

impl AgentPanes {
    /// Stores the pane, or removes it if it is gone or has no agent. Returns the agent that was in the pane before,
    /// unless the agent is still there.
    pub(super) fn update(&mut self, identity: PaneIdentity, now: Option<&PaneItem>) -> Option<String> {
        let now = now.filter(|pane| pane.agent_id.is_some());
        let agent_now = now.and_then(|pane| pane.agent_id.clone());
        let before = match now {
            Some(pane) => self.0.insert(identity, pane.clone()),
            None => self.0.remove(&identity),
        };
        before.and_then(|pane| pane.agent_id).filter(|agent_id| Some(agent_id) != agent_now.as_ref())
    }

    /// One pane of the agent. If the agent has several, the pane whose identity sorts first.
    pub(super) fn pane_of(&self, agent_id: &str) -> Option<&PaneItem> {
        self.0.values().find(|pane| pane.agent_id.as_deref() == Some(agent_id))
    }

    /// Whether this agent is in one of the stored panes, with this runtime.
    pub(super) fn is_in_runtime(&self, agent_id: &str, runtime_id: &str) -> bool {
        let is = |pane: &PaneItem| {
            pane.agent_id.as_deref() == Some(agent_id) && pane.runtime_id.as_deref() == Some(runtime_id)
        };
        self.0.values().any(is)
    }

    /// The changes that turn the stored panes into `now`. Stored panes that are not in `now` come first, as gone panes;
    /// every pane of `now` follows.
    pub(super) fn changes_to(&self, now: Vec<PaneItem>) -> Vec<PaneChange> {
        let removed = self.0.keys().filter(|identity| !now.iter().any(|pane| pane.identity == **identity)).cloned();
        let removed: Vec<PaneChange> = removed.map(|identity| (identity, None)).collect();
        removed.into_iter().chain(now.into_iter().map(|pane| (pane.identity.clone(), Some(pane)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{PaneId, WindowId};
    use jiff::Timestamp;

    use super::*;

    fn pane(id: u32, agent_id: Option<&str>) -> PaneItem {
        let identity = PaneIdentity {
            target: "host".into(),
            server: "default".into(),
            session_name: "work".into(),
            window_id: WindowId(0),
            pane_id: PaneId(id),
        };
        PaneItem {
            runtime_id: agent_id.map(|_| format!("runtime-{id}")),
            agent_id: agent_id.map(str::to_owned),
            ..PaneItem::new(identity, Timestamp::UNIX_EPOCH)
        }
    }

    fn put(agent_panes: &mut AgentPanes, pane: &PaneItem) -> Option<String> {
        agent_panes.update(pane.identity.clone(), Some(pane))
    }

    #[test]
    fn update_returns_the_agent_that_left() {
        let mut agent_panes = AgentPanes::default();
        assert_eq!(put(&mut agent_panes, &pane(1, Some("a"))), None);
        assert_eq!(put(&mut agent_panes, &pane(1, Some("a"))), None, "the agent stays");
        assert_eq!(put(&mut agent_panes, &pane(1, Some("b"))), Some("a".into()));
        assert_eq!(put(&mut agent_panes, &pane(1, None)), Some("b".into()), "the agent is gone, the pane remains");
        assert!(agent_panes.pane_of("b").is_none());
    }

    #[test]
    fn a_session_open_twice_keeps_its_second_pane() {
        let mut agent_panes = AgentPanes::default();
        put(&mut agent_panes, &pane(1, Some("a")));
        put(&mut agent_panes, &pane(2, Some("a")));
        assert!(
            agent_panes.is_in_runtime("a", "runtime-1")
                && agent_panes.is_in_runtime("a", "runtime-2")
                && !agent_panes.is_in_runtime("b", "runtime-1")
        );
        assert_eq!(agent_panes.update(pane(1, None).identity, None), Some("a".into()));
        assert_eq!(agent_panes.pane_of("a").map(|pane| pane.identity.pane_id), Some(PaneId(2)));
    }

    /// A reader that lagged also learns which panes were removed meanwhile.
    #[test]
    fn changes_to_lists_removed_panes() {
        let mut agent_panes = AgentPanes::default();
        put(&mut agent_panes, &pane(1, Some("a")));
        put(&mut agent_panes, &pane(2, Some("b")));
        let changes = agent_panes.changes_to(vec![pane(2, Some("b")), pane(3, Some("c"))]);
        let listed: Vec<(u32, bool)> =
            changes.iter().map(|(identity, now)| (identity.pane_id.0, now.is_some())).collect();
        assert_eq!(listed, [(1, false), (2, true), (3, true)]);
    }
}
