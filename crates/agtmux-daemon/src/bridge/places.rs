//! Where each agent was last seen.

use std::collections::HashMap;

use agtmux_api::wire::{PaneIdentity, PaneItem};

/// A pane, and what is there now if an agent is.
pub(super) type Shift = (PaneIdentity, Option<PaneItem>);

/// The panes in which agents with a session live. One session may be open in several, and one pane be shown in several places.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<PaneIdentity, PaneItem>);

impl Places {
    /// Gives the agent that was there before and is not any more.
    pub(super) fn put(&mut self, place: PaneIdentity, now: Option<&PaneItem>) -> Option<String> {
        let now = now.filter(|pane| pane.agent_id.is_some());
        let stays = now.and_then(|pane| pane.agent_id.clone());
        let before = match now {
            Some(pane) => self.0.insert(place, pane.clone()),
            None => self.0.remove(&place),
        };
        before.and_then(|pane| pane.agent_id).filter(|agent_id| Some(agent_id) != stays.as_ref())
    }

    /// One of the panes in which it lives.
    pub(super) fn of(&self, agent_id: &str) -> Option<&PaneItem> {
        let mut panes: Vec<_> = self.0.values().filter(|pane| pane.agent_id.as_deref() == Some(agent_id)).collect();
        panes.sort_by(|one, other| one.identity.cmp(&other.identity));
        panes.first().copied()
    }

    /// Whether the agent still lives in this runtime.
    pub(super) fn has(&self, agent_id: &str, runtime_id: &str) -> bool {
        let is = |pane: &PaneItem| {
            pane.agent_id.as_deref() == Some(agent_id) && pane.runtime_id.as_deref() == Some(runtime_id)
        };
        self.0.values().any(is)
    }

    /// All there is now, and those that are gone since.
    pub(super) fn compared_with(&self, now: Vec<PaneItem>) -> Vec<Shift> {
        let gone = self.0.keys().filter(|place| !now.iter().any(|pane| pane.identity == **place)).cloned();
        let gone: Vec<Shift> = gone.map(|place| (place, None)).collect();
        gone.into_iter().chain(now.into_iter().map(|pane| (pane.identity.clone(), Some(pane)))).collect()
    }
}
