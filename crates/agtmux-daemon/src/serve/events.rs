//! The stream of changes. A snapshot comes first, then the changes that pass the client's filter. After each group of
//! changes, the stream contains a comment with the new position. A client can therefore show the whole group at once.

use std::collections::HashSet;
use std::sync::Arc;

use agtmux_api::fleet_items::ItemFilter;
use agtmux_api::wire::{ItemIdentity, ListQuery, ListScope, WatchEvent, WatchEventKind, WatchItem};
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use super::extract::{ErrorResponse, StrictQuery};
use super::lists::check_target;
use super::openapi::Error;
use super::{ServeContext, sse};
use crate::event_log::{EventLog, EventLogState, EventsSince, PublishedEvent, frame};

#[cfg(test)]
mod tests;

/// Stream changes as server-sent events.
///
/// The stream starts with a snapshot, or after the event that `Last-Event-ID` names.
#[utoipa::path(get, path = "/v1/events", params(ListQuery), responses(
    (status = 200, body = WatchEvent, content_type = "text/event-stream"), Error<400>, Error<404>))]
pub(super) async fn get_events(
    context: ServeContext,
    headers: HeaderMap,
    StrictQuery(query): StrictQuery,
) -> Result<Response, ErrorResponse> {
    let scope = query.scope.unwrap_or_default();
    let filter = ItemFilter::new(&query, scope)?;
    check_target(&context, &filter)?;
    let last = sse::last_event(&headers, query.last_event_id)?;
    Ok(stream(&context, scope, filter, last))
}

fn stream(context: &ServeContext, scope: ListScope, filter: ItemFilter, last: Option<u64>) -> Response {
    let (event_log, resumed) = (context.event_log.clone(), last.is_some());
    let reader = WatchReader { event_log, scope, filter, position: last, resumed, shown: HashSet::new() };
    sse::stream(reader, context.event_log.subscribe(), context.stopping.clone())
}

struct WatchReader {
    event_log: Arc<EventLog>,
    scope: ListScope,
    filter: ItemFilter,
    /// The number of the last event that the client has; `None` before its first snapshot.
    position: Option<u64>,
    /// The client resumes an earlier stream and has not received anything on this stream yet.
    resumed: bool,
    /// The identities of the items that the client has. When one of these items no longer passes the filter, the client
    /// is told to remove it.
    shown: HashSet<ItemIdentity>,
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
                let mut out = self.filter_events(&events);
                if !out.is_empty() {
                    out.extend_from_slice(&sse::comment(self.position));
                }
                out.freeze()
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
            let event = WatchEvent::new(WatchEventKind::Reset, self.scope, seq, now);
            out.extend_from_slice(&frame(&event, false));
        }
        self.shown.clear();
        for item in log.view.items(self.scope).filter(|item| self.filter.accepts(item)) {
            self.shown.insert(item.identity());
            out.extend_from_slice(&frame(&WatchEvent::of_item(WatchEventKind::Snapshot, item, seq, now), false));
        }
        let errors = self.filter.target_errors(log.view.errors());
        if !errors.is_empty() {
            let event = WatchEvent::new(WatchEventKind::TargetErrors, self.scope, seq, now);
            out.extend_from_slice(&frame(&WatchEvent { target_errors: Some(errors), ..event }, false));
        }
        // The id goes last, because a client can resume only after a complete snapshot.
        out.extend_from_slice(format!("id: {seq}\n\n").as_bytes());
        self.position = Some(seq);
        out.freeze()
    }

    /// A client that resumes does not say which items it has. The daemon assumes that the client has every item that
    /// exists now or was removed meanwhile. The client may then be told to remove an item that it never had, which is
    /// harmless.
    fn assume_shown(&mut self, log: &EventLogState, missed: &[Arc<PublishedEvent>]) {
        let removed = missed.iter().filter_map(|published| published.event.item.as_ref());
        let removed = removed.filter(|item| self.scope.includes(item.scope())).map(WatchItem::identity);
        self.shown = log.view.items(self.scope).map(|item| item.identity()).chain(removed).collect();
    }

    fn filter_events(&mut self, events: &[Arc<PublishedEvent>]) -> BytesMut {
        let mut out = BytesMut::new();
        for PublishedEvent { event, frame: published } in events.iter().map(Arc::as_ref) {
            if let Some(task_event) = &event.task {
                // A task event concerns the runtime in the task's pane.
                if self.scope.includes(ListScope::Panes) && self.filter.accepts_task(task_event) {
                    out.extend_from_slice(published);
                }
            } else if let Some(errors) = &event.target_errors {
                let target_errors = Some(self.filter.target_errors(errors));
                let event = WatchEvent { scope: self.scope, target_errors, ..event.clone() };
                out.extend_from_slice(&frame(&event, true));
            } else if let Some(item) = event.item.as_ref().filter(|item| self.scope.includes(item.scope())) {
                if event.kind != WatchEventKind::Remove && self.filter.accepts(item) {
                    self.shown.insert(item.identity());
                    out.extend_from_slice(published);
                } else if self.shown.remove(&item.identity()) {
                    let removal = WatchEvent { kind: WatchEventKind::Remove, ..event.clone() };
                    out.extend_from_slice(&frame(&removal, true));
                }
            }
        }
        out
    }
}
