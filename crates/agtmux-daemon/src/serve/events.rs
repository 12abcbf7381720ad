//! The stream of changes: a snapshot first, then what changes, of what a reader has asked for.

use std::collections::HashSet;
use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{EventKind, Item, Scope, WatchEvent};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use super::{Context, sse};
use crate::shared::{Inner, Published, Shared, Since, event, frame, scope_of};
use crate::view::Filter;

pub(super) fn stream(context: &Context, scope: Scope, filter: Filter, last: Option<u64>) -> Response {
    let (shared, comes_back) = (context.shared.clone(), last.is_some());
    let reader = Reader { shared, scope, filter, position: last, comes_back, known: HashSet::new() };
    sse::stream(reader, context.shared.follow(), context.stopping.clone())
}

struct Reader {
    shared: Arc<Shared>,
    scope: Scope,
    filter: Filter,
    /// The last event that this reader has; none before its first snapshot.
    position: Option<u64>,
    /// It has got nothing yet in this stream, but something before.
    comes_back: bool,
    /// What this reader was shown, by identity: what leaves its filter has to be taken away from it.
    known: HashSet<String>,
}

impl sse::Place for Reader {
    fn catch_up(&mut self) -> Bytes {
        let shared = self.shared.clone();
        let inner = shared.read();
        let comes_back = std::mem::take(&mut self.comes_back);
        let since = self.position.map(|seq| inner.since(seq));
        let was_behind = matches!(since, Some(Since::TooOld));
        match since {
            Some(Since::Events(events)) => {
                if comes_back {
                    self.assume_known(&inner, &events);
                }
                self.position = Some(inner.seq());
                drop(inner);
                self.pass_on(&events)
            }
            Some(Since::TooOld) | None => self.snapshot(&inner, was_behind),
        }
    }

    fn position(&self) -> Option<u64> {
        self.position
    }
}

impl Reader {
    fn snapshot(&mut self, inner: &Inner, reset: bool) -> Bytes {
        let (seq, now) = (inner.seq(), Timestamp::now());
        let mut out = BytesMut::new();
        if reset {
            let event = WatchEvent {
                schema_version: SCHEMA_VERSION,
                seq,
                at: now,
                kind: EventKind::Reset,
                scope: self.scope,
                item: None,
                task: None,
            };
            out.extend_from_slice(&frame(&event, false));
        }
        self.known.clear();
        for item in inner.view.items(self.scope).filter(|item| self.filter.accepts(item)) {
            self.known.insert(key(&item));
            out.extend_from_slice(&frame(&event(seq, now, EventKind::Snapshot, item), false));
        }
        // Only now nothing is missing: whoever comes back with this id gets what follows.
        out.extend_from_slice(format!("id: {seq}\n\n").as_bytes());
        self.position = Some(seq);
        out.freeze()
    }

    /// A reader that comes back may have been shown anything that is there now or went while it was away: removals of
    /// either are passed on. One too many does no harm.
    fn assume_known(&mut self, inner: &Inner, missed: &[Arc<Published>]) {
        let gone = missed.iter().filter_map(|published| published.event.item.as_ref());
        let gone = gone.filter(|item| scope_of(item) == self.scope).map(key);
        self.known = inner.view.items(self.scope).map(|item| key(&item)).chain(gone).collect();
    }

    fn pass_on(&mut self, events: &[Arc<Published>]) -> Bytes {
        let mut out = BytesMut::new();
        for published in events {
            if let Some(news) = &published.event.task {
                // What happened to a task happened to whoever lives in its pane.
                if self.scope == Scope::Panes && self.filter.accepts_task(news) {
                    out.extend_from_slice(&published.frame);
                }
                continue;
            }
            let Some(item) = published.event.item.as_ref().filter(|item| scope_of(item) == self.scope) else {
                continue;
            };
            let shown = published.event.kind != EventKind::Remove && self.filter.accepts(item);
            if shown {
                self.known.insert(key(item));
                out.extend_from_slice(&published.frame);
            } else if self.known.remove(&key(item)) {
                let removal = WatchEvent { kind: EventKind::Remove, ..published.event.clone() };
                out.extend_from_slice(&frame(&removal, true));
            }
        }
        out.freeze()
    }
}

fn key(item: &Item) -> String {
    let identity = match item {
        Item::Pane(pane) => serde_json::to_string(&pane.identity),
        Item::Window(window) => serde_json::to_string(&window.identity),
        Item::Session(session) => serde_json::to_string(&session.identity),
    };
    identity.unwrap_or_else(|error| unreachable!("an identity serialises: {error}"))
}
