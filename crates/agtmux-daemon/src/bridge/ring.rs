//! The last events, for readers that come back.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;

/// How many events are kept for readers that are behind, and how many bytes of them.
const MAX_EVENTS: usize = 4096;
const MAX_BYTES: usize = 8 << 20;
/// How many a reader gets at a time: one that stalls holds no more than these.
const MAX_PER_READ: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BridgeEventKind {
    StateChanged,
    TurnCreated,
    CommanderAvailability,
    SessionCreated,
    SessionEnded,
}

impl BridgeEventKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::StateChanged, Self::TurnCreated, Self::CommanderAvailability, Self::SessionCreated, Self::SessionEnded];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::StateChanged => "state_changed",
            Self::TurnCreated => "turn_created",
            Self::CommanderAvailability => "commander_availability",
            Self::SessionCreated => "session_created",
            Self::SessionEnded => "session_ended",
        }
    }
}

/// One event as readers get it.
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
    /// The same for those who are no readers.
    silent_latest: watch::Sender<u64>,
}

#[derive(Debug)]
struct RingState {
    events: VecDeque<Arc<BridgeEvent>>,
    bytes: usize,
    /// Everything after this number is still here.
    complete_from: u64,
    last: u64,
}

impl EventRing {
    /// Numbers go on from the time of the start, so that those of another life are not taken for ours.
    pub(super) fn new(started: Timestamp) -> Self {
        let last = u64::try_from(started.as_microsecond()).unwrap_or(0);
        let kept = RingState { events: VecDeque::new(), bytes: 0, complete_from: last, last };
        Self { state: RwLock::new(kept), latest: watch::Sender::new(last), silent_latest: watch::Sender::new(last) }
    }

    pub(super) fn publish(&self, kind: BridgeEventKind, agent_id: &str, data: &Value) {
        let mut kept = self.state.write().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let id = kept.last;
        let frame = Bytes::from(format!("id: {id}\nevent: {}\ndata: {data}\n\n", kind.as_str()));
        kept.bytes += frame.len();
        kept.events.push_back(Arc::new(BridgeEvent { id, kind, agent_id: agent_id.to_owned(), frame }));
        while kept.events.len() > MAX_EVENTS || kept.bytes > MAX_BYTES {
            let Some(dropped) = kept.events.pop_front() else { break };
            kept.bytes -= dropped.frame.len();
            kept.complete_from = dropped.id;
        }
        drop(kept);
        self.notify(id);
    }

    fn notify(&self, id: u64) {
        self.latest.send_replace(id);
        self.silent_latest.send_replace(id);
    }

    /// Something happened that nobody can be told of any more: every reader has to start over.
    pub(super) fn discard_all(&self) {
        let mut kept = self.state.write().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let last = kept.last;
        *kept = RingState { events: VecDeque::new(), bytes: 0, complete_from: last, last };
        drop(kept);
        self.notify(last);
    }

    /// The next few that came after this number; none where some of it is gone.
    pub(crate) fn since(&self, id: u64) -> Option<Vec<Arc<BridgeEvent>>> {
        let kept = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if id < kept.complete_from || id > kept.last {
            return None;
        }
        let from = kept.events.partition_point(|event| event.id <= id);
        Some(kept.events.range(from..).take(MAX_PER_READ).cloned().collect())
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).last
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Turns with every event, and makes nobody a reader.
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
    fn a_reader_gets_what_it_missed_or_is_told_that_it_cannot() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        for n in 0..10 {
            ring.publish(BridgeEventKind::TurnCreated, "a", &json!({ "n": n }));
        }
        assert_eq!(ring.since(0).expect("all there").len(), 10);
        assert_eq!(ring.since(7).expect("all there")[0].id, 8);
        assert_eq!(ring.since(10).expect("all there").len(), 0);
        assert!(ring.since(11).is_none(), "from another life");
        for n in 0..MAX_EVENTS {
            ring.publish(BridgeEventKind::TurnCreated, "a", &json!({ "n": n }));
        }
        assert!(ring.since(9).is_none(), "too old");
        assert_eq!(ring.since(10).expect("all there").len(), MAX_PER_READ, "the rest comes next");
        assert_eq!(ring.since(MAX_EVENTS as u64).expect("all there").len(), 10);
    }

    #[test]
    fn what_is_kept_is_bounded_by_its_size_as_well() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        let long = "x".repeat(1 << 20);
        for _ in 0..20 {
            ring.publish(BridgeEventKind::SessionCreated, "a", &json!({ "working_directory": long }));
        }
        assert!(ring.since(12).is_none(), "the oldest make room");
        assert_eq!(ring.since(13).expect("all there").len(), 7);
    }

    #[test]
    fn after_a_loss_everybody_starts_over_once() {
        let ring = EventRing::new(Timestamp::UNIX_EPOCH);
        ring.publish(BridgeEventKind::TurnCreated, "a", &json!({}));
        assert_eq!(ring.since(1).map(|events| events.len()), Some(0));
        ring.discard_all();
        assert!(ring.since(1).is_none(), "not even those who had everything");
        assert_eq!(ring.since(ring.last_id()).map(|events| events.len()), Some(0));
        ring.publish(BridgeEventKind::TurnCreated, "a", &json!({}));
        assert_eq!(ring.since(2).map(|events| events.len()), Some(1));
    }
}
