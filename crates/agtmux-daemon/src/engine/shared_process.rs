//! Whose event it is when one process speaks for several agents.

use std::collections::BTreeMap;

use agtmux_core::binding::{BindFailure, EventOrigin};
use agtmux_core::fleet::PaneKey;
use agtmux_core::resolver::StateTransition;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::store::EventRow;

/// An agent tells that a turn begins before it shows it, and we look a moment later; but an event may be slow as well.
const MAX_DISPLAY_DELAY: SignedDuration = SignedDuration::from_secs(3);
const MAX_EVENT_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// When agents began to work after they had been seen at rest.
#[derive(Debug, Default)]
pub(super) struct TurnStarts {
    started_at: BTreeMap<RuntimeId, Timestamp>,
    has_new: bool,
}

impl TurnStarts {
    pub(super) fn record(&mut self, transition: &StateTransition, now: Timestamp) {
        let before = transition.from.as_ref().map(|record| record.state);
        let rested = matches!(before, Some(State::Idle | State::Completed | State::Error));
        if rested && transition.to.state == State::Running {
            self.started_at.insert(transition.runtime.clone(), now);
            self.has_new = true;
        }
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.started_at.remove(runtime);
    }

    /// Whether there is a turn that was not asked for before.
    pub(super) fn take_has_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Whether the turn that an event of that time is from may be the one that this agent began.
    fn may_match(&self, runtime: &RuntimeId, event_time: Timestamp) -> bool {
        self.started_at.get(runtime).is_some_and(|begun| {
            let shown_after = begun.duration_since(event_time);
            -MAX_EVENT_DELAY <= shown_after && shown_after <= MAX_DISPLAY_DELAY
        })
    }
}

impl Engine {
    /// The one whose session it names; where nothing but the session is told, that has to do for all agents. Else the one
    /// that has not told its session yet, works in the same directory, and was seen to begin a turn just then: the
    /// directory alone is no proof, for an agent outside of tmux may use the same process there.
    pub(super) fn bind_shared(&self, from: &EventOrigin, event_time: Timestamp) -> Result<RuntimeId, BindFailure> {
        let (Some(agent_type), Some(session)) = (&from.agent_type, &from.session) else {
            return Err(BindFailure::NoCandidate);
        };
        let is_shared = self.registry.shares_process(agent_type.as_str());
        let nothing_else = from.pane.is_none() && from.pids.is_empty();
        // What comes from below an agent, and is not its own, is nobody's whom we know.
        if (!is_shared && !nothing_else) || self.descends_from_agent(from) {
            return Err(BindFailure::NoCandidate);
        }
        let candidates = self
            .runtime_panes
            .iter()
            .filter(|(id, pane)| self.states.agent_type(id) == Some(agent_type) && pane.server.target == from.target);
        let named = candidates.clone().filter(|(id, _)| self.memories.session(id) == Some(session));
        match exactly_one(named.map(|(id, _)| id)) {
            Err(BindFailure::NoCandidate) if is_shared => {}
            found => return found.cloned(),
        }
        let unnamed =
            candidates.filter(|(id, pane)| self.memories.session(id).is_none() && self.has_cwd_of(pane, from));
        let begun = exactly_one(unnamed.map(|(id, _)| id).filter(|id| self.turn_starts.may_match(id, event_time)))?;
        match self.unbound_events.iter().any(|other| self.competes_for_turn(other, from, begun)) {
            true => Err(BindFailure::Ambiguous),
            false => Ok(begun.clone()),
        }
    }

    fn descends_from_agent(&self, from: &EventOrigin) -> bool {
        self.runtime_panes.values().any(|pane| {
            let runtime = self.fleet.pane(pane).and_then(|pane| pane.runtime.as_ref());
            runtime.is_some_and(|runtime| from.pids.contains(&runtime.process.pid))
        })
    }

    fn has_cwd_of(&self, pane: &PaneKey, from: &EventOrigin) -> bool {
        let cwd = self.fleet.pane(pane).and_then(|pane| pane.foreground.as_ref()?.cwd.as_ref());
        cwd.is_some() && cwd == from.cwd.as_ref()
    }

    /// Whether another event may tell of the same turn, for another session.
    fn competes_for_turn(&self, other: &EventRow, from: &EventOrigin, begun: &RuntimeId) -> bool {
        let alike = |other: &EventOrigin| {
            (&other.agent_type, &other.cwd) == (&from.agent_type, &from.cwd)
                && other.session.is_some()
                && other.session != from.session
        };
        other.origin.as_ref().is_some_and(alike) && self.turn_starts.may_match(begun, other.order.event_time)
    }
}

fn exactly_one<'r>(mut found: impl Iterator<Item = &'r RuntimeId>) -> Result<&'r RuntimeId, BindFailure> {
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(BindFailure::NoCandidate),
        (Some(_), Some(_)) => Err(BindFailure::Ambiguous),
    }
}
