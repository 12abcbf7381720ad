//! The agents as the state machine of notifications sees them, collected from the panes of the published view.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::wire::{PaneIdentity, PaneItem};
use agtmux_core::notify::AgentSight;
use agtmux_core::state::State;

/// The panes in which agents run. A pane of a linked window is listed once per session.
#[derive(Debug, Default)]
pub(super) struct AgentsInPanes {
    panes: BTreeMap<PaneIdentity, PaneItem>,
    by_runtime: BTreeMap<String, BTreeSet<PaneIdentity>>,
    /// Each agent as it was before its state or its dialog changed.
    before: BTreeMap<String, PaneItem>,
}

/// The runtimes that a changed pane concerns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedAgents {
    /// The runtime that is in no pane any more.
    pub(super) gone: Option<String>,
    pub(super) seen: Option<String>,
}

impl AgentsInPanes {
    pub(super) fn update(&mut self, identity: &PaneIdentity, now: Option<PaneItem>) -> ChangedAgents {
        let now = now.filter(is_agent);
        let seen = now.as_ref().and_then(|pane| pane.runtime_id.clone());
        let episode = now.as_ref().map(episode_of);
        let before = match now {
            Some(pane) => self.panes.insert(identity.clone(), pane),
            None => self.panes.remove(identity),
        };
        let left = before.as_ref().and_then(|pane| pane.runtime_id.clone());
        let left = left.filter(|runtime| Some(runtime) != seen.as_ref());
        if let (Some(before), Some(runtime), None) = (before, &seen, &left)
            && Some(episode_of(&before)) != episode
        {
            self.before.insert(runtime.clone(), before);
        }
        if let Some(runtime) = &seen {
            self.by_runtime.entry(runtime.clone()).or_default().insert(identity.clone());
        }
        ChangedAgents { gone: left.filter(|runtime| self.leave(runtime, identity)), seen }
    }

    /// Removes a pane of this runtime. Returns whether it was the last one.
    fn leave(&mut self, runtime: &str, identity: &PaneIdentity) -> bool {
        let Some(panes) = self.by_runtime.get_mut(runtime) else { return false };
        panes.remove(identity);
        let is_last = panes.is_empty();
        if is_last {
            self.by_runtime.remove(runtime);
            self.before.remove(runtime);
        }
        is_last
    }

    pub(super) fn identities(&self) -> impl Iterator<Item = &PaneIdentity> {
        self.panes.keys()
    }

    /// One pane of this runtime.
    pub(super) fn pane(&self, runtime: &str) -> Option<&PaneItem> {
        self.panes_of(runtime).next()
    }

    /// The agent before the last change of its state or its dialog.
    pub(super) fn before(&self, runtime: &str) -> Option<&PaneItem> {
        self.before.get(runtime)
    }

    fn panes_of(&self, runtime: &str) -> impl Iterator<Item = &PaneItem> {
        let identities = self.by_runtime.get(runtime).into_iter().flatten();
        identities.filter_map(|identity| self.panes.get(identity))
    }

    pub(super) fn sight(&self, runtime: &str) -> Option<AgentSight> {
        let pane = self.pane(runtime)?;
        Some(AgentSight {
            agent_type: pane.agent_type.as_ref()?.to_string(),
            target: pane.identity.target.clone(),
            sessions: self.panes_of(runtime).map(|pane| pane.identity.session_name.clone()).collect(),
            state: pane.state?,
            reason: pane.reason_code,
            unseen: pane.unseen,
            fingerprint: pane.dialog.as_ref().map(|dialog| dialog.fingerprint.clone()),
            since: pane.since.unwrap_or(pane.updated_at),
        })
    }
}

fn episode_of(pane: &PaneItem) -> (Option<State>, Option<String>) {
    (pane.state, pane.dialog.as_ref().map(|dialog| dialog.fingerprint.clone()))
}

fn is_agent(pane: &PaneItem) -> bool {
    pane.runtime_id.is_some() && pane.state.is_some() && pane.agent_type.is_some()
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{AgentType, PaneId, WindowId};
    use jiff::Timestamp;

    use super::*;

    fn pane(session: &str, runtime: Option<&str>) -> PaneItem {
        let identity = PaneIdentity {
            target: "host".into(),
            server: "default".into(),
            session_name: session.into(),
            window_id: WindowId(1),
            pane_id: PaneId(1),
        };
        PaneItem {
            runtime_id: runtime.map(str::to_owned),
            agent_type: Some(AgentType::new("claude")),
            state: Some(State::Idle),
            ..PaneItem::new(identity, Timestamp::UNIX_EPOCH)
        }
    }

    fn changed(gone: Option<&str>, seen: Option<&str>) -> ChangedAgents {
        ChangedAgents { gone: gone.map(str::to_owned), seen: seen.map(str::to_owned) }
    }

    #[test]
    fn an_agent_is_gone_when_no_session_shows_its_pane() {
        let mut agents = AgentsInPanes::default();
        let (work, linked) = (pane("work", Some("a")), pane("linked", Some("a")));
        for pane in [&work, &linked] {
            assert_eq!(agents.update(&pane.identity, Some(pane.clone())), changed(None, Some("a")));
        }
        let sessions = agents.sight("a").expect("seen").sessions;
        assert_eq!(sessions.into_iter().collect::<Vec<_>>(), ["linked", "work"]);
        assert_eq!(agents.update(&work.identity, None), changed(None, None));
        assert_eq!(agents.update(&linked.identity, Some(pane("linked", None))), changed(Some("a"), None));
        assert_eq!(agents.sight("a"), None);
        let next = pane("linked", Some("b"));
        assert_eq!(agents.update(&next.identity, Some(next.clone())), changed(None, Some("b")));
        let other = pane("linked", Some("c"));
        assert_eq!(agents.update(&other.identity, Some(other.clone())), changed(Some("b"), Some("c")));
    }
}
