//! The stream of changes: a snapshot first, then what changes, of what a reader has asked for.

use std::collections::HashSet;
use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{ListScope, WatchEvent, WatchEventKind, WatchItem};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use super::{ServeContext, sse};
use crate::event_log::{EventLog, EventLogState, EventsSince, PublishedEvent, event, frame, scope_of};
use crate::view::ItemFilter;

pub(super) fn stream(context: &ServeContext, scope: ListScope, filter: ItemFilter, last: Option<u64>) -> Response {
    let (shared, comes_back) = (context.event_log.clone(), last.is_some());
    let reader =
        WatchReader { event_log: shared, scope, filter, position: last, resumed: comes_back, shown: HashSet::new() };
    sse::stream(reader, context.event_log.subscribe(), context.stopping.clone())
}

struct WatchReader {
    event_log: Arc<EventLog>,
    scope: ListScope,
    filter: ItemFilter,
    /// The last event that this reader has; none before its first snapshot.
    position: Option<u64>,
    /// It has got nothing yet in this stream, but something before.
    resumed: bool,
    /// What this reader was shown, by identity: what leaves its filter has to be taken away from it.
    shown: HashSet<String>,
}

impl sse::EventSource for WatchReader {
    fn catch_up(&mut self) -> Bytes {
        let shared = self.event_log.clone();
        let inner = shared.read();
        let comes_back = std::mem::take(&mut self.resumed);
        let since = self.position.map(|seq| inner.since(seq));
        let was_behind = matches!(since, Some(EventsSince::TooOld));
        match since {
            Some(EventsSince::Events(events)) => {
                if comes_back {
                    self.assume_shown(&inner, &events);
                }
                self.position = Some(inner.seq());
                drop(inner);
                self.filter_events(&events)
            }
            Some(EventsSince::TooOld) | None => self.snapshot(&inner, was_behind),
        }
    }

    fn position(&self) -> Option<u64> {
        self.position
    }
}

impl WatchReader {
    fn snapshot(&mut self, inner: &EventLogState, reset: bool) -> Bytes {
        let (seq, now) = (inner.seq(), Timestamp::now());
        let mut out = BytesMut::new();
        if reset {
            let event = WatchEvent {
                schema_version: SCHEMA_VERSION,
                seq,
                at: now,
                kind: WatchEventKind::Reset,
                scope: self.scope,
                item: None,
                task: None,
            };
            out.extend_from_slice(&frame(&event, false));
        }
        self.shown.clear();
        for item in inner.view.items(self.scope).filter(|item| self.filter.accepts(item)) {
            self.shown.insert(identity_key(&item));
            out.extend_from_slice(&frame(&event(seq, now, WatchEventKind::Snapshot, item), false));
        }
        // Only now nothing is missing: whoever comes back with this id gets what follows.
        out.extend_from_slice(format!("id: {seq}\n\n").as_bytes());
        self.position = Some(seq);
        out.freeze()
    }

    /// A reader that comes back may have been shown anything that is there now or went while it was away: removals of
    /// either are passed on. One too many does no harm.
    fn assume_shown(&mut self, inner: &EventLogState, missed: &[Arc<PublishedEvent>]) {
        let gone = missed.iter().filter_map(|published| published.event.item.as_ref());
        let gone = gone.filter(|item| scope_of(item) == self.scope).map(identity_key);
        self.shown = inner.view.items(self.scope).map(|item| identity_key(&item)).chain(gone).collect();
    }

    fn filter_events(&mut self, events: &[Arc<PublishedEvent>]) -> Bytes {
        let mut out = BytesMut::new();
        for published in events {
            if let Some(news) = &published.event.task {
                // What happened to a task happened to whoever lives in its pane.
                if self.scope == ListScope::Panes && self.filter.accepts_task(news) {
                    out.extend_from_slice(&published.frame);
                }
                continue;
            }
            let Some(item) = published.event.item.as_ref().filter(|item| scope_of(item) == self.scope) else {
                continue;
            };
            let shown = published.event.kind != WatchEventKind::Remove && self.filter.accepts(item);
            if shown {
                self.shown.insert(identity_key(item));
                out.extend_from_slice(&published.frame);
            } else if self.shown.remove(&identity_key(item)) {
                let removal = WatchEvent { kind: WatchEventKind::Remove, ..published.event.clone() };
                out.extend_from_slice(&frame(&removal, true));
            }
        }
        out.freeze()
    }
}

fn identity_key(item: &WatchItem) -> String {
    let identity = match item {
        WatchItem::Pane(pane) => serde_json::to_string(&pane.identity),
        WatchItem::Window(window) => serde_json::to_string(&window.identity),
        WatchItem::Session(session) => serde_json::to_string(&session.identity),
    };
    identity.unwrap_or_else(|error| unreachable!("an identity serialises: {error}"))
}
