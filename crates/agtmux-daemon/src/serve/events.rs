//! The stream of changes: a snapshot first, then the changes that pass the client's filter.

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
    let (event_log, resumed) = (context.event_log.clone(), last.is_some());
    let reader = WatchReader { event_log, scope, filter, position: last, resumed, shown: HashSet::new() };
    sse::stream(reader, context.event_log.subscribe(), context.stopping.clone())
}

struct WatchReader {
    event_log: Arc<EventLog>,
    scope: ListScope,
    filter: ItemFilter,
    /// The last event that the client has; none before its first snapshot.
    position: Option<u64>,
    /// The client resumes an earlier stream and has got nothing yet in this one.
    resumed: bool,
    /// The identities of the items that the client has: an item that no longer passes the filter must be removed there.
    shown: HashSet<String>,
}

impl sse::EventSource for WatchReader {
    fn catch_up(&mut self) -> Bytes {
        let event_log = self.event_log.clone();
        let log = event_log.read();
        let resumed = std::mem::take(&mut self.resumed);
        let since = self.position.map(|seq| log.since(seq));
        let too_old = matches!(since, Some(EventsSince::TooOld));
        match since {
            Some(EventsSince::Events(events)) => {
                if resumed {
                    self.assume_shown(&log, &events);
                }
                self.position = Some(log.seq());
                drop(log);
                self.filter_events(&events)
            }
            Some(EventsSince::TooOld) | None => self.snapshot(&log, too_old),
        }
    }

    fn position(&self) -> Option<u64> {
        self.position
    }
}

impl WatchReader {
    fn snapshot(&mut self, log: &EventLogState, reset: bool) -> Bytes {
        let (seq, now) = (log.seq(), Timestamp::now());
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
        for item in log.view.items(self.scope).filter(|item| self.filter.accepts(item)) {
            self.shown.insert(identity_key(&item));
            out.extend_from_slice(&frame(&event(seq, now, WatchEventKind::Snapshot, item), false));
        }
        // The id goes last: only now is the snapshot complete and can be resumed from.
        out.extend_from_slice(format!("id: {seq}\n\n").as_bytes());
        self.position = Some(seq);
        out.freeze()
    }

    /// A client that resumes may have any item that exists now or was removed meanwhile. Removals of all of them are
    /// sent; a superfluous one is harmless.
    fn assume_shown(&mut self, log: &EventLogState, missed: &[Arc<PublishedEvent>]) {
        let removed = missed.iter().filter_map(|published| published.event.item.as_ref());
        let removed = removed.filter(|item| scope_of(item) == self.scope).map(identity_key);
        self.shown = log.view.items(self.scope).map(|item| identity_key(&item)).chain(removed).collect();
    }

    fn filter_events(&mut self, events: &[Arc<PublishedEvent>]) -> Bytes {
        let mut out = BytesMut::new();
        for published in events {
            if let Some(task_event) = &published.event.task {
                // A task event concerns the runtime in the task's pane.
                if self.scope == ListScope::Panes && self.filter.accepts_task(task_event) {
                    out.extend_from_slice(&published.frame);
                }
                continue;
            }
            let Some(item) = published.event.item.as_ref().filter(|item| scope_of(item) == self.scope) else {
                continue;
            };
            let is_visible = published.event.kind != WatchEventKind::Remove && self.filter.accepts(item);
            if is_visible {
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
    identity.unwrap_or_else(|error| unreachable!("an identity serializes: {error}"))
}
