//! Remembers the newest event number of each runtime and source. The engine ignores an event whose number is not higher
//! than the number of an earlier event from the same source.

use std::collections::BTreeMap;

use agtmux_core::evidence::Source;
use agtmux_core::ordering::OrderKey;
use agtmux_core::runtime::RuntimeId;
use jiff::{SignedDuration, Timestamp};

use crate::store::SourceCursor;

/// The newest event of each source of each runtime. Sources have separate cursors, so that the events of one source
/// cannot make those of another stale.
#[derive(Debug, Default)]
pub(super) struct SourceCursors(BTreeMap<RuntimeId, BTreeMap<Source, OrderKey>>);

impl SourceCursors {
    pub(super) fn new(stored: impl IntoIterator<Item = SourceCursor>) -> Self {
        let mut cursors = Self::default();
        for ((runtime, source), newest) in stored {
            cursors.0.entry(runtime).or_default().insert(source, newest);
        }
        cursors
    }

    /// Moves the cursor to this event. Returns false if the event is stale: its number is not higher than that of an
    /// earlier event from the same source.
    ///
    /// An event without a number is never stale. The hooks of one agent run at the same time, so their events may
    /// arrive in any order; the ledger puts their assertions in order.
    pub(super) fn advance(&mut self, runtime: &RuntimeId, source: Source, order: &OrderKey) -> bool {
        let cursors = self.0.entry(runtime.clone()).or_default();
        let Some(newest) = cursors.get_mut(&source) else {
            cursors.insert(source, order.clone());
            return true;
        };
        if order.is_newer_than(newest) {
            // An event without a number does not reset the numbers of its source.
            let source_seq = order.source_seq.or(newest.source_seq);
            *newest = OrderKey { source_seq, ..order.clone() };
            return true;
        }
        order.source_seq.is_none() || newest.source_seq.is_none()
    }

    /// Moves all times by `by`, because the clock of this machine was set.
    pub(super) fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) {
        let orders = self.0.values_mut().flat_map(BTreeMap::values_mut);
        orders.flat_map(OrderKey::times_mut).for_each(|at| *at = at.checked_add(by).unwrap_or(now).min(now));
    }

    pub(super) fn forget(&mut self, runtime: &RuntimeId) {
        self.0.remove(runtime);
    }
}
