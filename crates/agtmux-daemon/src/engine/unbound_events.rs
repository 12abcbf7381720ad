//! Events whose runtime is not known yet.

use std::collections::{HashMap, VecDeque};

use agtmux_core::binding::EventOrigin;
use agtmux_core::evidence::Source;
use jiff::{SignedDuration, Timestamp};

use crate::store::EventRow;

/// The pending events in order of arrival. Thousands of events may be pending, for example because they name a pane
/// that does not exist, so `by_key` speeds up the search for a duplicate.
#[derive(Debug, Default)]
pub(super) struct UnboundEvents {
    events: VecDeque<EventRow>,
    /// How many events have been removed from the front. The positions in `by_key` still count them.
    removed: usize,
    by_key: HashMap<UnboundKey, usize>,
}

type UnboundKey = (Option<EventOrigin>, Source, String);

impl UnboundEvents {
    pub(super) fn new(events: Vec<EventRow>) -> Self {
        let mut unbound = Self::default();
        events.into_iter().for_each(|event| unbound.push(event));
        unbound
    }

    pub(super) fn push(&mut self, event: EventRow) {
        self.by_key.insert(key(&event), self.removed + self.events.len());
        self.events.push_back(event);
    }

    /// The pending event with the same origin, source and key.
    pub(super) fn same_key(&self, event: &EventRow) -> Option<&EventRow> {
        let at = self.by_key.get(&key(event))?;
        self.events.get(at.checked_sub(self.removed)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &EventRow> {
        self.events.iter()
    }

    pub(super) fn oldest(&self) -> Option<&EventRow> {
        self.events.front()
    }

    pub(super) fn remove_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.removed += 1;
            self.by_key.remove(&key(&event));
        }
    }

    /// Moves all times by `by`, because the clock of this machine was set.
    pub(super) fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) {
        let times = self.events.iter_mut().flat_map(|event| event.order.times_mut());
        times.for_each(|at| *at = at.checked_add(by).unwrap_or(now).min(now));
    }

    /// Adds `by` to the time that the events may wait, because the machine slept and the daemon could find no agent
    /// meanwhile.
    pub(super) fn skip_time(&mut self, by: SignedDuration, now: Timestamp) {
        let arrivals = self.events.iter_mut().map(|event| &mut event.order.ingested_at);
        arrivals.for_each(|at| *at = at.checked_add(by).unwrap_or(now).min(now));
    }

    /// Takes all pending events, so that the engine can try to bind them again.
    pub(super) fn take_all(&mut self) -> VecDeque<EventRow> {
        std::mem::take(self).events
    }
}

fn key(event: &EventRow) -> UnboundKey {
    (event.origin.clone(), event.source, event.dedupe_key.clone())
}
