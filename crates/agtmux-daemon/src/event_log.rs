//! The published state: the view, the recent events and the last sequence number. The engine writes this state. All
//! other parts of the daemon only read it.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use agtmux_api::wire::{ListScope, TaskWatchEvent, WatchEvent, WatchEventKind};
use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::view::FleetView;

/// The most events and the most bytes in the buffer of recent events. A reader that falls behind catches up from this
/// buffer. If the buffer no longer has the events that a reader needs, the reader must read a new snapshot.
const MAX_EVENTS: usize = 8192;
const MAX_BYTES: usize = 16 << 20;
/// If one change causes more events than this, the events are not buffered, and readers read a new snapshot instead. A
/// snapshot then costs no more than the events. An example is a new server with hundreds of panes.
const MAX_EVENTS_AT_ONCE: usize = 256;

#[derive(Debug)]
pub(crate) struct EventLog {
    inner: RwLock<EventLogState>,
    latest: watch::Sender<u64>,
}

#[derive(Debug)]
pub(crate) struct EventLogState {
    pub(crate) view: FleetView,
    recent: VecDeque<Arc<PublishedEvent>>,
    recent_bytes: usize,
    seq: u64,
    /// The sequence number with which this daemon started.
    start_seq: u64,
    /// The sequence number of the last event that was dropped from the buffer. 0 if no event was dropped.
    dropped_up_to: u64,
}

/// An event, together with its encoded frame. Most readers receive the frame unchanged.
#[derive(Debug)]
pub(crate) struct PublishedEvent {
    pub(crate) event: WatchEvent,
    pub(crate) frame: Bytes,
}

/// The result of a request for all events after a sequence number.
#[derive(Debug)]
pub(crate) enum EventsSince {
    Events(Vec<Arc<PublishedEvent>>),
    /// The buffer no longer contains all of these events, or the sequence number is from another daemon. The reader
    /// needs a new snapshot.
    TooOld,
}

impl EventLog {
    pub(crate) fn new(view: FleetView, seq: u64) -> Self {
        let inner =
            EventLogState { view, recent: VecDeque::new(), recent_bytes: 0, seq, start_seq: seq, dropped_up_to: 0 };
        Self { inner: RwLock::new(inner), latest: watch::Sender::new(seq) }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, EventLogState> {
        // Each field is replaced as a whole, so the state is consistent even after a panic of the writer.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the view and publishes the resulting events in one step, so that no reader sees the new view without the
    /// events. The resulting events get sequence numbers above `after`. The numbers up to `after` belong to the
    /// transitions and task events that caused the change.
    pub(crate) fn publish(
        &self,
        now: Timestamp,
        after: u64,
        task_events: Vec<TaskWatchEvent>,
        change: impl FnOnce(&mut FleetView) -> Vec<WatchEvent>,
    ) -> u64 {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        for task_event in task_events {
            let event = task_watch_event(task_event);
            let frame = frame(&event, true);
            inner.push(PublishedEvent { event, frame });
        }
        inner.seq = inner.seq.max(after);
        let changes = change(&mut inner.view);
        if changes.len() > MAX_EVENTS_AT_ONCE {
            inner.discard_all(changes.len());
        } else {
            for event in changes {
                inner.seq += 1;
                let event = WatchEvent { seq: inner.seq, at: now, ..event };
                let frame = frame(&event, true);
                inner.push(PublishedEvent { event, frame });
            }
        }
        let seq = inner.seq;
        drop(inner);
        self.latest.send_if_modified(|latest| std::mem::replace(latest, seq) != seq);
        seq
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }
}

impl EventLogState {
    /// Drops all buffered events. Advances the sequence number by `changes`, so that every reader notices that its copy
    /// is out of date.
    fn discard_all(&mut self, changes: usize) {
        self.seq += changes as u64;
        self.recent = VecDeque::new();
        self.recent_bytes = 0;
        self.dropped_up_to = self.seq;
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Appends an event. If the buffer is then too large, drops the oldest events, but never the new one.
    fn push(&mut self, published: PublishedEvent) {
        self.recent_bytes += published.frame.len();
        self.recent.push_back(Arc::new(published));
        while self.recent.len() > 1 && (self.recent.len() > MAX_EVENTS || self.recent_bytes > MAX_BYTES) {
            let Some(dropped) = self.recent.pop_front() else { return };
            self.recent_bytes -= dropped.frame.len();
            self.dropped_up_to = dropped.event.seq;
        }
    }

    pub(crate) fn since(&self, seq: u64) -> EventsSince {
        // All events after this number are still buffered.
        let complete_from = if self.dropped_up_to > 0 { self.dropped_up_to } else { self.start_seq };
        if seq < complete_from || seq > self.seq {
            return EventsSince::TooOld;
        }
        let from = self.recent.partition_point(|published| published.event.seq <= seq);
        EventsSince::Events(self.recent.range(from..).cloned().collect())
    }
}

/// Converts a task event. The result keeps the sequence number under which the task event was stored.
fn task_watch_event(task_event: TaskWatchEvent) -> WatchEvent {
    let event = WatchEvent::new(WatchEventKind::Task, ListScope::Panes, task_event.event.seq, task_event.event.at);
    WatchEvent { task: Some(Box::new(task_event)), ..event }
}

/// Encodes one server-sent event. With `with_id`, the frame contains an id from which a reader can resume. Pass true
/// only if a reader that has this event also has all earlier ones.
pub(crate) fn frame(event: &WatchEvent, with_id: bool) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_else(|error| unreachable!("a wire type serialises: {error}"));
    let kind = event.kind.as_str();
    let frame = match with_id {
        true => format!("id: {}\nevent: {kind}\ndata: {data}\n\n", event.seq),
        false => format!("event: {kind}\ndata: {data}\n\n"),
    };
    Bytes::from(frame)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agtmux_api::wire::{SessionIdentity, SessionItem, WatchItem};

    use super::*;

    fn changes(count: usize) -> Vec<WatchEvent> {
        let item = |n: usize| {
            let identity = SessionIdentity { target: None, server: None, session_name: format!("s{n}") };
            let counts = Default::default();
            WatchItem::Session(SessionItem { identity, counts, by_target: BTreeMap::new(), windows: 1, panes: 1 })
        };
        let at = Timestamp::UNIX_EPOCH;
        (0..count).map(|n| WatchEvent::of_item(WatchEventKind::Upsert, item(n), 0, at)).collect()
    }

    fn count_since(log: &EventLog, seq: u64) -> Option<usize> {
        match log.read().since(seq) {
            EventsSince::Events(events) => Some(events.len()),
            EventsSince::TooOld => None,
        }
    }

    #[test]
    fn a_large_change_makes_readers_start_over() {
        let log = EventLog::new(FleetView::default(), 0);
        let first = log.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| changes(3));
        assert_eq!(count_since(&log, 0), Some(3));
        let second = log.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| changes(MAX_EVENTS_AT_ONCE + 1));
        assert_eq!((count_since(&log, 0), count_since(&log, first)), (None, None));
        assert_eq!(count_since(&log, second), Some(0), "an up-to-date reader has missed nothing");
        log.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| changes(2));
        assert_eq!(count_since(&log, second), Some(2));
    }

    fn published(seq: u64, bytes: usize) -> PublishedEvent {
        let event = WatchEvent::new(WatchEventKind::Upsert, ListScope::Panes, seq, Timestamp::UNIX_EPOCH);
        PublishedEvent { event, frame: Bytes::from(vec![b' '; bytes]) }
    }

    /// Appends events to a new log: `events` events of `bytes` bytes each. Returns the sequence number of the oldest
    /// event that is still buffered.
    fn first_buffered(events: u64, bytes: usize) -> Option<u64> {
        let log = EventLog::new(FleetView::default(), 0);
        let mut inner = log.inner.write().unwrap_or_else(PoisonError::into_inner);
        for seq in 1..=events {
            inner.seq = seq;
            inner.push(published(seq, bytes));
        }
        let first = inner.recent.front()?.event.seq;
        assert!(matches!(inner.since(first - 1), EventsSince::Events(kept) if kept.len() == inner.recent.len()));
        assert!(first == 1 || matches!(inner.since(first - 2), EventsSince::TooOld));
        Some(first)
    }

    #[test]
    fn the_buffer_is_limited_by_count_and_size() {
        assert_eq!(first_buffered(8192, 100), Some(1));
        assert_eq!(first_buffered(8200, 100), Some(9), "too many events: the oldest are dropped");
        assert_eq!(first_buffered(20, 1 << 20), Some(5), "too many bytes: the oldest are dropped");
        assert_eq!(first_buffered(3, MAX_BYTES + 1), Some(3), "the newest is never dropped");
    }
}
