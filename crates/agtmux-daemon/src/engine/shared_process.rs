//! Whose event it is when one process speaks for several agents.

use std::collections::BTreeMap;

use agtmux_core::binding::{Unbound, Whereabouts};
use agtmux_core::engine::Transition;
use agtmux_core::fleet::PaneKey;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::store::EventRow;

/// An agent tells that a turn begins before it shows it, and we look a moment later; but an event may be slow as well.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(3);
const TOLD_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// When agents began to work after they had been seen at rest.
#[derive(Debug, Default)]
pub(super) struct Turns {
    begun: BTreeMap<RuntimeId, Timestamp>,
    news: bool,
}

impl Turns {
    pub(super) fn note(&mut self, transition: &Transition, now: Timestamp) {
        let before = transition.from.as_ref().map(|record| record.state);
        let rested = matches!(before, Some(State::Idle | State::Completed | State::Error));
        if rested && transition.to.state == State::Running {
            self.begun.insert(transition.runtime.clone(), now);
            self.news = true;
        }
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.begun.remove(runtime);
    }

    /// Whether there is a turn that was not asked for before.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether the turn that an event of that time is from may be the one that this agent began.
    fn may_be_of(&self, runtime: &RuntimeId, event_time: Timestamp) -> bool {
        self.begun.get(runtime).is_some_and(|begun| {
            let shown_after = begun.duration_since(event_time);
            -TOLD_WITHIN <= shown_after && shown_after <= SHOWN_WITHIN
        })
    }
}

impl Engine {
    /// The one whose session it names; where nothing but the session is told, that has to do for all agents. Else the one
    /// that has not told its session yet, works in the same directory, and was seen to begin a turn just then: the
    /// directory alone is no proof, for an agent outside of tmux may use the same process there.
    pub(super) fn bind_shared(&self, from: &Whereabouts, event_time: Timestamp) -> Result<RuntimeId, Unbound> {
        let (Some(agent_type), Some(session)) = (&from.agent_type, &from.session) else {
            return Err(Unbound::NoCandidate);
        };
        let is_shared = self.registry.shares_process(agent_type.as_str());
        let nothing_else = from.pane.is_none() && from.pids.is_empty();
        // What comes from below an agent, and is not its own, is nobody's whom we know.
        if (!is_shared && !nothing_else) || self.comes_from_below_an_agent(from) {
            return Err(Unbound::NoCandidate);
        }
        let candidates = self
            .homes
            .iter()
            .filter(|(id, pane)| self.states.agent_type(id) == Some(agent_type) && pane.server.target == from.target);
        let named = candidates.clone().filter(|(id, _)| self.memories.session(id) == Some(session));
        match only(named.map(|(id, _)| id)) {
            Err(Unbound::NoCandidate) if is_shared => {}
            found => return found.cloned(),
        }
        let unnamed = candidates.filter(|(id, pane)| self.memories.session(id).is_none() && self.is_at(pane, from));
        let begun = only(unnamed.map(|(id, _)| id).filter(|id| self.turns.may_be_of(id, event_time)))?;
        match self.waiting.iter().any(|other| self.rivals(other, from, begun)) {
            true => Err(Unbound::Ambiguous),
            false => Ok(begun.clone()),
        }
    }

    fn comes_from_below_an_agent(&self, from: &Whereabouts) -> bool {
        self.homes.values().any(|pane| {
            let runtime = self.fleet.pane(pane).and_then(|pane| pane.runtime.as_ref());
            runtime.is_some_and(|runtime| from.pids.contains(&runtime.process.pid))
        })
    }

    fn is_at(&self, pane: &PaneKey, from: &Whereabouts) -> bool {
        let cwd = self.fleet.pane(pane).and_then(|pane| pane.foreground.as_ref()?.cwd.as_ref());
        cwd.is_some() && cwd == from.cwd.as_ref()
    }

    /// Whether another event may tell of the same turn, for another session.
    fn rivals(&self, other: &EventRow, from: &Whereabouts, begun: &RuntimeId) -> bool {
        let alike = |other: &Whereabouts| {
            (&other.agent_type, &other.cwd) == (&from.agent_type, &from.cwd)
                && other.session.is_some()
                && other.session != from.session
        };
        other.whereabouts.as_ref().is_some_and(alike) && self.turns.may_be_of(begun, other.order.event_time)
    }
}

fn only<'r>(mut found: impl Iterator<Item = &'r RuntimeId>) -> Result<&'r RuntimeId, Unbound> {
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Unbound::NoCandidate),
        (Some(_), Some(_)) => Err(Unbound::Ambiguous),
    }
}
