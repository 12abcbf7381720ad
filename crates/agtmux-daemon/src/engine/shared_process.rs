//! Binds events of a process that serves several agents.

use std::collections::BTreeMap;

use agtmux_core::binding::{BindFailure, EventOrigin};
use agtmux_core::fleet::PaneKey;
use agtmux_core::resolver::StateTransition;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use super::Engine;
use crate::store::EventRow;

/// An event can belong to a turn only if the daemon saw the turn begin at most this long after the time of the event.
/// The daemon sees the beginning late, because the agent must first draw it and the daemon must capture the screen.
/// `MAX_EVENT_DELAY` is the limit for the opposite order, in which the agent sends the event after the daemon saw the
/// turn begin.
const MAX_DISPLAY_DELAY: SignedDuration = SignedDuration::from_secs(3);
const MAX_EVENT_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// The time at which each agent last began a turn. A turn begins when the state of the agent changes from idle,
/// completed or error to running.
#[derive(Debug, Default)]
pub(super) struct TurnStarts {
    started_at: BTreeMap<RuntimeId, Timestamp>,
    has_new: bool,
}

impl TurnStarts {
    pub(super) fn record(&mut self, transition: &StateTransition, now: Timestamp) {
        let before = transition.from.as_ref().map(|record| record.state);
        let was_at_rest = matches!(before, Some(State::Idle | State::Completed | State::Error));
        if was_at_rest && transition.to.state == State::Running {
            self.started_at.insert(transition.runtime.clone(), now);
            self.has_new = true;
        }
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.started_at.remove(runtime);
    }

    /// Moves all times by `by`, because the clock of this machine was set.
    pub(super) fn shift_clock(&mut self, by: SignedDuration) {
        self.started_at.values_mut().for_each(|at| *at = at.checked_add(by).unwrap_or(*at));
    }

    /// Whether a turn has begun since the last call.
    pub(super) fn take_has_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Whether an event with this time may belong to the turn that the agent began last.
    fn may_match(&self, runtime: &RuntimeId, event_time: Timestamp) -> bool {
        self.started_at.get(runtime).is_some_and(|started| {
            let shown_after = started.duration_since(event_time);
            -MAX_EVENT_DELAY <= shown_after && shown_after <= MAX_DISPLAY_DELAY
        })
    }
}

impl Engine {
    /// Returns the agent that an event of a shared process belongs to: the agent whose session the event names.
    ///
    /// If no agent has that session, returns the agent that has no session yet, works in the event's directory, and
    /// began a turn at the time of the event. The directory alone is no proof, because the process may also serve an
    /// agent outside tmux in that directory.
    ///
    /// An event of a process that is not shared is bound only by its session, and only if it names no pane and no
    /// process.
    pub(super) fn bind_shared(&self, origin: &EventOrigin, event_time: Timestamp) -> Result<RuntimeId, BindFailure> {
        let (Some(agent_type), Some(session)) = (&origin.agent_type, &origin.session) else {
            return Err(BindFailure::NoCandidate);
        };
        let is_shared = self.registry.agent(agent_type.as_str()).is_some_and(|agent| agent.shares_process());
        let nothing_else = origin.pane.is_none() && origin.pids.is_empty();
        // A process below a known agent is a nested process that agtmux does not track, so its events are not bound.
        if (!is_shared && !nothing_else) || self.is_below_agent(&origin.pids) {
            return Err(BindFailure::NoCandidate);
        }
        let candidates = self
            .runtime_panes
            .iter()
            .filter(|(id, pane)| self.states.agent_type(id) == Some(agent_type) && pane.server.target == origin.target);
        let named = candidates.clone().filter(|(id, _)| self.memories.session(id) == Some(session));
        match exactly_one(named.map(|(id, _)| id)) {
            Err(BindFailure::NoCandidate) if is_shared => {}
            found => return found.cloned(),
        }
        let unnamed =
            candidates.filter(|(id, pane)| self.memories.session(id).is_none() && self.has_cwd_of(pane, origin));
        let candidate = exactly_one(unnamed.map(|(id, _)| id).filter(|id| self.turn_starts.may_match(id, event_time)))?;
        match self.unbound_events.iter().any(|other| self.competes_for_turn(other, origin, candidate)) {
            true => Err(BindFailure::Ambiguous),
            false => Ok(candidate.clone()),
        }
    }

    /// Whether one of these processes is an agent in a pane.
    pub(super) fn is_below_agent(&self, pids: &[u32]) -> bool {
        self.runtime_panes.values().any(|pane| {
            let runtime = self.fleet.pane(pane).and_then(|pane| pane.runtime.as_ref());
            runtime.is_some_and(|runtime| pids.contains(&runtime.process.pid))
        })
    }

    fn has_cwd_of(&self, pane: &PaneKey, origin: &EventOrigin) -> bool {
        let cwd = self.fleet.pane(pane).and_then(|pane| pane.foreground.as_ref()?.cwd.as_ref());
        cwd.is_some() && cwd == origin.cwd.as_ref()
    }

    /// Whether the pending event `other` names a different session but may belong to the same turn of `candidate`.
    fn competes_for_turn(&self, other: &EventRow, origin: &EventOrigin, candidate: &RuntimeId) -> bool {
        let is_competitor = |other: &EventOrigin| {
            (&other.agent_type, &other.cwd) == (&origin.agent_type, &origin.cwd)
                && other.session.is_some()
                && other.session != origin.session
        };
        other.origin.as_ref().is_some_and(is_competitor)
            && self.turn_starts.may_match(candidate, other.order.event_time)
    }
}

fn exactly_one<'r>(mut found: impl Iterator<Item = &'r RuntimeId>) -> Result<&'r RuntimeId, BindFailure> {
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(BindFailure::NoCandidate),
        (Some(_), Some(_)) => Err(BindFailure::Ambiguous),
    }
}
