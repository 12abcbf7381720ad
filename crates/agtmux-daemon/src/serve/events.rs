//! The stream of changes. Each reader pulls from the shared record at its own pace: one that stalls costs nothing but
//! its place in it, and one that falls too far behind starts over.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{EventKind, Item, Scope, WatchEvent};
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use jiff::Timestamp;
use tokio::sync::watch;

use super::Context;
use crate::shared::{Inner, Published, Shared, Since, event, frame, scope_of};
use crate::view::Filter;

/// A comment this often tells both ends that the other is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) fn stream(context: &Context, scope: Scope, filter: Filter, last: Option<u64>) -> Response {
    let reader = Reader {
        shared: context.shared.clone(),
        latest: context.shared.follow(),
        stopping: context.stopping.clone(),
        scope,
        filter,
        position: last,
        begun: false,
        known: HashSet::new(),
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

struct Reader {
    shared: Arc<Shared>,
    latest: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    scope: Scope,
    filter: Filter,
    /// The last event that this reader has; none before its first snapshot.
    position: Option<u64>,
    begun: bool,
    /// What this reader was shown, by identity: what leaves its filter has to be taken away from it.
    known: HashSet<String>,
}

impl Reader {
    /// The next bytes to send, or `None` when the daemon stops.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let chunk = self.catch_up();
            let first = !std::mem::replace(&mut self.begun, true);
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if first {
                // It tells the reader that the stream stands.
                return Some(Bytes::from_static(b":\n\n"));
            }
            tokio::select! {
                changed = self.latest.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    fn catch_up(&mut self) -> Bytes {
        self.latest.mark_unchanged();
        let shared = self.shared.clone();
        let inner = shared.read();
        let since = self.position.map(|seq| inner.since(seq));
        let was_behind = matches!(since, Some(Since::TooOld));
        match since {
            Some(Since::Events(events)) => {
                let resumed = !self.begun;
                if resumed {
                    self.assume_known(&inner, &events);
                }
                self.position = Some(inner.seq());
                drop(inner);
                self.pass_on(&events)
            }
            Some(Since::TooOld) | None => self.snapshot(&inner, was_behind),
        }
    }

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
