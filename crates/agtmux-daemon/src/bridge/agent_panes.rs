//! Where each agent was last seen.

use std::collections::HashMap;

use agtmux_api::wire::{PaneIdentity, PaneItem};

/// A pane, and what is there now if an agent is.
pub(super) type PaneChange = (PaneIdentity, Option<PaneItem>);

/// The panes in which agents with a session live. One session may be open in several, and one pane be shown in several places.
#[derive(Debug, Default)]
pub(super) struct AgentPanes(HashMap<PaneIdentity, PaneItem>);

impl AgentPanes {
    /// Gives the agent that was there before and is not any more.
    pub(super) fn update(&mut self, place: PaneIdentity, now: Option<&PaneItem>) -> Option<String> {
        let now = now.filter(|pane| pane.agent_id.is_some());
        let stays = now.and_then(|pane| pane.agent_id.clone());
        let before = match now {
            Some(pane) => self.0.insert(place, pane.clone()),
            None => self.0.remove(&place),
        };
        before.and_then(|pane| pane.agent_id).filter(|agent_id| Some(agent_id) != stays.as_ref())
    }

    /// One of the panes in which it lives.
    pub(super) fn pane_of(&self, agent_id: &str) -> Option<&PaneItem> {
        let mut panes: Vec<_> = self.0.values().filter(|pane| pane.agent_id.as_deref() == Some(agent_id)).collect();
        panes.sort_by(|one, other| one.identity.cmp(&other.identity));
        panes.first().copied()
    }

    /// Whether the agent still lives in this runtime.
    pub(super) fn is_in_runtime(&self, agent_id: &str, runtime_id: &str) -> bool {
        let is = |pane: &PaneItem| {
            pane.agent_id.as_deref() == Some(agent_id) && pane.runtime_id.as_deref() == Some(runtime_id)
        };
        self.0.values().any(is)
    }

    /// All there is now, and those that are gone since.
    pub(super) fn changes_to(&self, now: Vec<PaneItem>) -> Vec<PaneChange> {
        let gone = self.0.keys().filter(|place| !now.iter().any(|pane| pane.identity == **place)).cloned();
        let gone: Vec<PaneChange> = gone.map(|place| (place, None)).collect();
        gone.into_iter().chain(now.into_iter().map(|pane| (pane.identity.clone(), Some(pane)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{PaneId, WindowId};
    use jiff::Timestamp;

    use super::*;

    fn pane(id: u32, agent_id: Option<&str>) -> PaneItem {
        PaneItem {
            identity: PaneIdentity {
                target: "host".into(),
                server: "default".into(),
                session_name: "work".into(),
                window_id: WindowId(0),
                pane_id: PaneId(id),
            },
            runtime_id: agent_id.map(|_| format!("runtime-{id}")),
            agent_id: agent_id.map(str::to_owned),
            agent_type: None,
            name: None,
            state: None,
            reason_code: None,
            confidence: None,
            state_version: None,
            since: None,
            updated_at: Timestamp::UNIX_EPOCH,
            needs_action: false,
            dialog: None,
            title: None,
            cwd: None,
            command: None,
            dead: None,
        }
    }

    fn put(places: &mut AgentPanes, pane: &PaneItem) -> Option<String> {
        places.update(pane.identity.clone(), Some(pane))
    }

    #[test]
    fn who_is_not_there_any_more_has_left() {
        let mut places = AgentPanes::default();
        assert_eq!(put(&mut places, &pane(1, Some("a"))), None);
        assert_eq!(put(&mut places, &pane(1, Some("a"))), None, "it stays");
        assert_eq!(put(&mut places, &pane(1, Some("b"))), Some("a".into()));
        assert_eq!(put(&mut places, &pane(1, None)), Some("b".into()), "the agent is gone, the pane is not");
        assert!(places.pane_of("b").is_none());
    }

    #[test]
    fn of_a_session_that_is_open_twice_one_is_left() {
        let mut places = AgentPanes::default();
        put(&mut places, &pane(1, Some("a")));
        put(&mut places, &pane(2, Some("a")));
        assert!(
            places.is_in_runtime("a", "runtime-1")
                && places.is_in_runtime("a", "runtime-2")
                && !places.is_in_runtime("b", "runtime-1")
        );
        assert_eq!(places.update(pane(1, None).identity, None), Some("a".into()));
        assert_eq!(places.pane_of("a").map(|pane| pane.identity.pane_id), Some(PaneId(2)));
    }

    /// Whoever was too far behind is told of those who went in the meantime as well.
    #[test]
    fn a_look_at_everything_tells_who_went() {
        let mut places = AgentPanes::default();
        put(&mut places, &pane(1, Some("a")));
        put(&mut places, &pane(2, Some("b")));
        let shifts = places.changes_to(vec![pane(2, Some("b")), pane(3, Some("c"))]);
        let shown: Vec<(u32, bool)> = shifts.iter().map(|(place, now)| (place.pane_id.0, now.is_some())).collect();
        assert_eq!(shown, [(1, false), (2, true), (3, true)]);
    }
}
