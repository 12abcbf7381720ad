//! Those that are waited for, and how far each has come.

use std::collections::BTreeSet;

use agtmux_api::wire::{EventKind, Item, PaneIdentity, PaneItem, Snapshot, WatchEvent};
use agtmux_core::state::State;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    Gone,
    /// The time was up first.
    Late,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Agent {
    pub(super) reference: String,
    pub(super) runtime_id: String,
    pub(super) agent_type: String,
    pub(super) pane_id: String,
    /// The last that is known.
    pub(super) state: Option<State>,
    /// The wanted state that it was seen in.
    pub(super) reached: Option<State>,
    pub(super) gone: bool,
    /// Where it is seen; a linked window shows it in several places.
    places: BTreeSet<PaneIdentity>,
}

impl Agent {
    /// None where nobody lives.
    pub(super) fn of(reference: &str, seen: &Snapshot) -> Option<Self> {
        Some(Self {
            reference: reference.to_owned(),
            runtime_id: seen.runtime_id.clone()?,
            agent_type: seen.agent_type.clone().unwrap_or_default(),
            pane_id: seen.pane_id.clone(),
            state: seen.state,
            ..Self::default()
        })
    }

    /// One that does not live any more.
    pub(super) fn ended(reference: &str) -> Self {
        let runtime_id = reference.trim_start_matches("runtime:").to_owned();
        Self { reference: reference.to_owned(), runtime_id, gone: true, ..Self::default() }
    }

    pub(super) fn is_there(&self) -> bool {
        self.reached.is_some()
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "ref": self.reference,
            "runtime_id": self.runtime_id,
            "agent_type": self.agent_type,
            "pane_id": self.pane_id,
            "state": self.state,
            "reached": self.reached,
            "gone": self.gone,
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Crowd {
    pub(super) agents: Vec<Agent>,
    wanted: Vec<State>,
}

impl Crowd {
    pub(super) fn new(agents: Vec<Agent>, wanted: &[State]) -> Self {
        let mut crowd = Self { agents: Vec::new(), wanted: wanted.to_vec() };
        for mut agent in agents {
            let state = agent.state.take();
            set(&mut agent, state, &crowd.wanted);
            // The same one may have been named twice.
            if !crowd.agents.iter().any(|other| other.runtime_id == agent.runtime_id) {
                crowd.agents.push(agent);
            }
        }
        crowd
    }

    /// All that lives now. Whoever is missing is gone.
    pub(super) fn read(&mut self, items: &[PaneItem]) {
        for agent in &mut self.agents {
            let seen: Vec<&PaneItem> =
                items.iter().filter(|item| item.runtime_id.as_deref() == Some(&agent.runtime_id)).collect();
            agent.places = seen.iter().map(|item| item.identity.clone()).collect();
            match seen.first() {
                Some(item) => set(agent, item.state, &self.wanted),
                None => (agent.gone, agent.state) = (true, None),
            }
        }
    }

    pub(super) fn notice(&mut self, event: &WatchEvent) {
        let Some(Item::Pane(item)) = &event.item else { return };
        for agent in &mut self.agents {
            if item.runtime_id.as_deref() == Some(&agent.runtime_id) {
                agent.places.insert(item.identity.clone());
                set(agent, item.state, &self.wanted);
            }
        }
    }

    /// Whether somebody that is waited for may have left: only the list tells.
    pub(super) fn is_unsure_after(&self, event: &WatchEvent) -> bool {
        let Some(Item::Pane(item)) = &event.item else { return false };
        let concerns = |agent: &Agent| {
            let its_own = item.runtime_id.as_deref() == Some(&agent.runtime_id);
            let its_place = agent.places.contains(&item.identity);
            if its_own { event.kind == EventKind::Remove } else { its_place }
        };
        self.agents.iter().any(|agent| !agent.gone && concerns(agent))
    }

    /// None as long as there is something to wait for.
    pub(super) fn verdict(&self, any: bool) -> Option<Verdict> {
        let mut there = self.agents.iter().map(Agent::is_there);
        let reached = if any { there.any(|is| is) } else { there.all(|is| is) };
        let mut lost = self.agents.iter().map(|agent| agent.gone && !agent.is_there());
        let gone = if any { lost.all(|is| is) } else { lost.any(|is| is) };
        match (reached, gone) {
            (true, _) => Some(Verdict::Reached),
            (false, true) => Some(Verdict::Gone),
            (false, false) => None,
        }
    }
}

fn set(agent: &mut Agent, state: Option<State>, wanted: &[State]) {
    agent.state = state;
    agent.reached = agent.reached.or(state.filter(|state| wanted.contains(state)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, state: State) -> Agent {
        Agent { runtime_id: id.into(), state: Some(state), ..Agent::default() }
    }

    fn crowd(states: &[State]) -> Crowd {
        let agents = states.iter().enumerate().map(|(n, state)| agent(&n.to_string(), *state)).collect();
        Crowd::new(agents, &[State::Idle, State::Completed])
    }

    #[test]
    fn one_is_enough_for_any_and_each_is_needed_for_all() {
        let both = crowd(&[State::Idle, State::Running]);
        assert_eq!((both.verdict(true), both.verdict(false)), (Some(Verdict::Reached), None));
        assert_eq!(crowd(&[State::Idle, State::Completed]).verdict(false), Some(Verdict::Reached));
    }

    #[test]
    fn one_that_is_gone_ends_the_wait_for_all_and_not_for_any() {
        let mut both = crowd(&[State::Running, State::Running]);
        both.agents[0].gone = true;
        assert_eq!((both.verdict(true), both.verdict(false)), (None, Some(Verdict::Gone)));
        both.agents[1].gone = true;
        assert_eq!(both.verdict(true), Some(Verdict::Gone));
    }

    #[test]
    fn one_that_was_there_and_left_has_been_there() {
        let mut one = crowd(&[State::Idle]);
        one.read(&[]);
        assert!(one.agents[0].gone);
        assert_eq!(one.verdict(false), Some(Verdict::Reached));
    }
}
