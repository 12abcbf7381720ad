//! A buffer of the most recent bridge events, from which readers can resume.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use agtmux_core::named_enum;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

/// The most events and the most bytes in the buffer. A reader that falls behind catches up from this buffer.
const MAX_EVENTS: usize = 4096;
const MAX_BYTES: usize = 8 << 20;
/// The most events that one read returns. This limits how much memory a reader that has stalled can occupy.
const MAX_PER_READ: usize = 256;

named_enum!(
    BridgeEventKind {
        StateChanged => "state_changed",
        TurnCreated => "turn_created",
        CommanderAvailability => "commander_availability",
        SessionCreated => "session_created",
        SessionEnded => "session_ended",
    }
);

/// One event with its encoded frame.
#[derive(Debug)]
pub(crate) struct BridgeEvent {
    pub(crate) id: u64,
    pub(crate) kind: BridgeEventKind,
    pub(crate) agent_id: String,
    pub(crate) frame: Bytes,
}

#[derive(Debug)]
pub(crate) struct EventRing {
    state: RwLock<RingState>,
    latest: watch::Sender<u64>,
    /// Always has the same value as `latest`. A subscriber of `latest` counts as a reader of the bridge; a subscriber
    /// of this channel does not.
    silent_latest: watch::Sender<u64>,
}

#[derive(Debug)]
struct RingState {
    events: VecDeque<Arc<BridgeEvent>>,
    bytes: usize,
    /// The buffer contains every event with a larger id than this.
    complete_from: u64,
    last: u64,
}

impl EventRing {
    /// The first id is the daemon's start time in microseconds, and each event adds 1. Ids from an earlier daemon are
    /// therefore smaller, and count as too old.
    pub(super) fn new(started: Timestamp) -> Self {
        let last = u64::try_from(started.as_microsecond()).unwrap_or(0);
        let state = RingState { events: VecDeque::new(), bytes: 0, complete_from: last, last };
        Self { state: RwLock::new(state), latest: watch::Sender::new(last), silent_latest: watch::Sender::new(last) }
    }

    pub(super) fn publish(&self, kind: BridgeEventKind, agent_id: &str, data: &Value) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.last += 1;
        let id = state.last;
        let frame = Bytes::from(format!("id: {id}\nevent: {kind}\ndata: {data}\n\n"));
        state.bytes += frame.len();
        state.events.push_back(Arc::new(BridgeEvent { id, kind, agent_id: agent_id.to_owned(), frame }));
        while state.events.len() > MAX_EVENTS || state.bytes > MAX_BYTES {
            let Some(dropped) = state.events.pop_front() else { break };
            state.bytes -= dropped.frame.len();
            state.complete_from = dropped.id;
        }
        drop(state);
        self.notify(id);
    }

    fn notify(&self, id: u64) {
        self.latest.send_replace(id);
        self.silent_latest.send_replace(id);
    }

    /// Drops all buffered events, so that every reader must start again from the current state. Called when the bridge
    /// has missed prompts.
    pub(super) fn discard_all(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.last += 1;
        let last = state.last;
        *state = RingState { events: VecDeque::new(), bytes: 0, complete_from: last, last };
        drop(state);
        self.notify(last);
    }

    /// The events with larger ids than `id`, at most `MAX_PER_READ`. `None` if some of these events were dropped, or if
    /// `id` is larger than the newest id.
    pub(crate) fn since(&self, id: u64) -> Option<Vec<Arc<BridgeEvent>>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if id < state.complete_from || id > state.last {
            return None;
        }
        let from = state.events.partition_point(|event| event.id <= id);
        Some(state.events.range(from..).take(MAX_PER_READ).cloned().collect())
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).last
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Returns a receiver that wakes on every event. The receiver does not count as a reader of the bridge.
    pub(crate) fn subscribe_silently(&self) -> watch::Receiver<u64> {
        self.silent_latest.subscribe()
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.latest.receiver_count() > 0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reader_gets_missed_events_or_none() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        for n in 0..10 {
            ring.publish(BridgeEventKind::TurnCreated, "a", &json!({ "n": n }));
        }
        assert_eq!(ring.since(0).expect("complete").len(), 10);
        assert_eq!(ring.since(7).expect("complete")[0].id, 8);
        assert_eq!(ring.since(10).expect("complete").len(), 0);
        assert!(ring.since(11).is_none(), "an id of another daemon");
        for n in 0..MAX_EVENTS {
            ring.publish(BridgeEventKind::TurnCreated, "a", &json!({ "n": n }));
        }
        assert!(ring.since(9).is_none(), "too old");
        assert_eq!(ring.since(10).expect("complete").len(), MAX_PER_READ, "the rest is in the next read");
        assert_eq!(ring.since(MAX_EVENTS as u64).expect("complete").len(), 10);
    }

    #[test]
    fn the_buffer_is_limited_by_size() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        let long = "x".repeat(1 << 20);
        for _ in 0..20 {
            ring.publish(BridgeEventKind::SessionCreated, "a", &json!({ "working_directory": long }));
        }
        assert!(ring.since(12).is_none(), "the oldest events are dropped");
        assert_eq!(ring.since(13).expect("complete").len(), 7);
    }

    #[test]
    fn discard_all_makes_every_reader_start_over_once() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        ring.publish(BridgeEventKind::TurnCreated, "a", &json!({}));
        assert_eq!(ring.since(1).map(|events| events.len()), Some(0));
        ring.discard_all();
        assert!(ring.since(1).is_none(), "even for a reader that was up to date");
        assert_eq!(ring.since(ring.last_id()).map(|events| events.len()), Some(0));
        ring.publish(BridgeEventKind::TurnCreated, "a", &json!({}));
        assert_eq!(ring.since(2).map(|events| events.len()), Some(1));
    }
}
