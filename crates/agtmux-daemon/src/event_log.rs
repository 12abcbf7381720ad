//! What the engine writes and everyone else reads: the view, the recent events, and the number of the last one.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ListScope, TaskWatchEvent, WatchEvent, WatchEventKind, WatchItem};
use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::view::{FleetView, ItemChange};

/// How many events are kept for readers that are behind, and how many bytes of them. One that is further behind starts
/// over.
const MAX_EVENTS: usize = 8192;
const MAX_BYTES: usize = 16 << 20;
/// What shifts more than this at once, as a server with hundreds of panes that is found, is not kept at all: to start over
/// costs a reader no more than to read it.
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
    /// Nothing was published before this number in this life.
    start_seq: u64,
    /// The number of the last event that had to make room.
    dropped_up_to: u64,
}

/// An event, and the bytes that most readers get.
#[derive(Debug)]
pub(crate) struct PublishedEvent {
    pub(crate) event: WatchEvent,
    pub(crate) frame: Bytes,
}

/// What a reader gets who has everything up to some event.
#[derive(Debug)]
pub(crate) enum EventsSince {
    Events(Vec<Arc<PublishedEvent>>),
    /// Too far behind, or from another life: everything has to be read anew.
    TooOld,
}

impl EventLog {
    pub(crate) fn new(view: FleetView, seq: u64) -> Self {
        let inner =
            EventLogState { view, recent: VecDeque::new(), recent_bytes: 0, seq, start_seq: seq, dropped_up_to: 0 };
        Self { inner: RwLock::new(inner), latest: watch::Sender::new(seq) }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, EventLogState> {
        // A writer that panicked left whole values behind: each field is replaced, not edited in halves.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the view and publishes what that shifted, as one step for every reader.
    /// Numbers up to `after` are taken by the transitions that led to it, and by what happened to tasks.
    pub(crate) fn publish(
        &self,
        now: Timestamp,
        after: u64,
        happened: Vec<TaskWatchEvent>,
        change: impl FnOnce(&mut FleetView) -> Vec<ItemChange>,
    ) -> u64 {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        for news in happened {
            let event = task_event(news);
            let frame = frame(&event, true);
            inner.push(PublishedEvent { event, frame });
        }
        inner.seq = inner.seq.max(after);
        let shifts = change(&mut inner.view);
        if shifts.len() > MAX_EVENTS_AT_ONCE {
            inner.discard_all(shifts.len());
        } else {
            for (kind, item) in shifts {
                inner.seq += 1;
                let event = event(inner.seq, now, kind, item);
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
    /// Numbers are used up all the same: no reader may take what it has for what there is.
    fn discard_all(&mut self, shifts: usize) {
        self.seq += shifts as u64;
        self.recent = VecDeque::new();
        self.recent_bytes = 0;
        self.dropped_up_to = self.seq;
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The oldest make room; the newest is kept in any case.
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
        // Everything after this number is still here.
        let complete_from = if self.dropped_up_to > 0 { self.dropped_up_to } else { self.start_seq };
        if seq < complete_from || seq > self.seq {
            return EventsSince::TooOld;
        }
        let from = self.recent.partition_point(|published| published.event.seq <= seq);
        EventsSince::Events(self.recent.range(from..).cloned().collect())
    }
}

pub(crate) fn scope_of(item: &WatchItem) -> ListScope {
    match item {
        WatchItem::Pane(_) => ListScope::Panes,
        WatchItem::Window(_) => ListScope::Windows,
        WatchItem::Session(_) => ListScope::Sessions,
    }
}

pub(crate) fn event(seq: u64, at: Timestamp, kind: WatchEventKind, item: WatchItem) -> WatchEvent {
    WatchEvent { schema_version: SCHEMA_VERSION, seq, at, kind, scope: scope_of(&item), item: Some(item), task: None }
}

/// It has its number already, and was stored under it.
fn task_event(news: TaskWatchEvent) -> WatchEvent {
    WatchEvent {
        schema_version: SCHEMA_VERSION,
        seq: news.event.seq,
        at: news.event.at,
        kind: WatchEventKind::Task,
        scope: ListScope::Panes,
        item: None,
        task: Some(Box::new(news)),
    }
}

/// One server-sent event. Only an event after which nothing is missing carries an id to go on from.
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

    use agtmux_api::wire::{SessionIdentity, SessionItem};

    use super::*;

    fn shifts(count: usize) -> Vec<ItemChange> {
        let item = |n: usize| {
            let identity = SessionIdentity { target: None, server: None, session_name: format!("s{n}") };
            let counts = Default::default();
            WatchItem::Session(SessionItem { identity, counts, by_target: BTreeMap::new(), windows: 1, panes: 1 })
        };
        (0..count).map(|n| (WatchEventKind::Upsert, item(n))).collect()
    }

    fn told_since(shared: &EventLog, seq: u64) -> Option<usize> {
        match shared.read().since(seq) {
            EventsSince::Events(events) => Some(events.len()),
            EventsSince::TooOld => None,
        }
    }

    #[test]
    fn a_reader_starts_over_after_more_than_it_is_worth_to_keep() {
        let shared = EventLog::new(FleetView::default(), 0);
        let first = shared.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| shifts(3));
        assert_eq!(told_since(&shared, 0), Some(3));
        let second = shared.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| shifts(MAX_EVENTS_AT_ONCE + 1));
        assert_eq!((told_since(&shared, 0), told_since(&shared, first)), (None, None));
        assert_eq!(told_since(&shared, second), Some(0), "one that has read everything has");
        shared.publish(Timestamp::UNIX_EPOCH, 0, Vec::new(), |_| shifts(2));
        assert_eq!(told_since(&shared, second), Some(2));
    }

    fn published(seq: u64, bytes: usize) -> PublishedEvent {
        let event = WatchEvent {
            schema_version: SCHEMA_VERSION,
            seq,
            at: Timestamp::UNIX_EPOCH,
            kind: WatchEventKind::Upsert,
            scope: ListScope::Panes,
            item: None,
            task: None,
        };
        PublishedEvent { event, frame: Bytes::from(vec![b' '; bytes]) }
    }

    /// The number of the first event that is still kept after this many of this size.
    fn first_kept(events: u64, bytes: usize) -> Option<u64> {
        let shared = EventLog::new(FleetView::default(), 0);
        let mut inner = shared.inner.write().unwrap_or_else(PoisonError::into_inner);
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
    fn what_is_kept_is_bounded_by_number_and_by_size() {
        assert_eq!(first_kept(8192, 100), Some(1));
        assert_eq!(first_kept(8200, 100), Some(9), "the oldest go when there are too many");
        assert_eq!(first_kept(20, 1 << 20), Some(5), "or when they are too large");
        assert_eq!(first_kept(3, MAX_BYTES + 1), Some(3), "but never the newest");
    }
}
