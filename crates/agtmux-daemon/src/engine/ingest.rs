//! Events that are brought from outside: bound to a runtime, taken once, turned into statements.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{Receipt, ReceiptStatus};
use agtmux_core::binding::{self, Unbound, Whereabouts};
use agtmux_core::evidence::Source;
use agtmux_core::ordering::{OrderKey, trusted_time};
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;

use super::{Engine, Step};
use crate::store::{Change, EventRow, events};

/// An event that could be read. Its secrets are gone already.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) event_id: String,
    pub(crate) from: From,
    pub(crate) source: Source,
    pub(crate) event_type: String,
    pub(crate) source_event_id: Option<String>,
    pub(crate) dedupe_key: String,
    pub(crate) source_seq: Option<u64>,
    pub(crate) event_time: Option<Timestamp>,
    pub(crate) content_hash: String,
    pub(crate) payload: Option<String>,
    /// It waited in the spool for as long as it is old.
    pub(crate) was_kept: bool,
}

#[derive(Debug)]
pub(crate) enum From {
    Runtime(RuntimeId),
    Pane(Whereabouts),
}

impl Engine {
    pub(super) fn ingest(&mut self, incoming: Incoming, step: &mut Step) -> Result<Receipt, ApiError> {
        let event_time = match incoming.event_time {
            // It was kept on this machine, by its clock.
            Some(time) if incoming.was_kept => time.min(step.now),
            claimed => trusted_time(claimed, step.now),
        };
        let (runtime, whereabouts) = match incoming.from {
            From::Runtime(id) if self.states.knows(&id) => (Ok(id), None),
            From::Runtime(id) => return Err(no_such_runtime(&id)),
            From::Pane(from) => (self.bind(&from, event_time), Some(from)),
        };
        let event = EventRow {
            order: OrderKey {
                source_seq: incoming.source_seq,
                event_time,
                ingested_at: step.now,
                event_id: incoming.event_id,
            },
            runtime: runtime.clone().ok(),
            whereabouts,
            event_type: incoming.event_type,
            source: incoming.source,
            source_event_id: incoming.source_event_id,
            dedupe_key: incoming.dedupe_key,
            content_hash: incoming.content_hash,
            payload: incoming.payload,
            doubt: runtime.as_ref().err().copied().filter(|why| *why == Unbound::Ambiguous),
        };
        let Ok(runtime) = runtime else { return self.keep_waiting(event, step) };
        if let Some(earlier) = self.earlier(&runtime, &event, step)? {
            return Ok(receipt(earlier, ReceiptStatus::Duplicate, Some(&runtime)));
        }
        step.changes.push(Change::PutEvent(Box::new(event.clone())));
        self.hear(&runtime, &event, step);
        Ok(receipt(event.order.event_id, ReceiptStatus::Bound, Some(&runtime)))
    }

    fn bind(&self, from: &Whereabouts, event_time: Timestamp) -> Result<RuntimeId, Unbound> {
        match binding::bind(&self.fleet, &self.moved_out, from, event_time) {
            Err(Unbound::NoCandidate) => self.bind_shared(from, event_time),
            bound => bound,
        }
    }

    fn keep_waiting(&mut self, event: EventRow, step: &mut Step) -> Result<Receipt, ApiError> {
        if let Some(earlier) = self.waiting.same_key(&event) {
            return match earlier.content_hash == event.content_hash {
                true => Ok(receipt(earlier.order.event_id.clone(), ReceiptStatus::Duplicate, None)),
                false => Err(conflict(&event.dedupe_key)),
            };
        }
        let receipt = receipt(event.order.event_id.clone(), ReceiptStatus::PendingBind, None);
        self.waiting.push(EventRow { payload: None, ..event.clone() });
        step.changes.push(Change::PutEvent(Box::new(event)));
        Ok(receipt)
    }

    /// The event that came with this key before, if it is the same one; other content is refused.
    fn earlier(&self, runtime: &RuntimeId, event: &EventRow, step: &mut Step) -> Result<Option<String>, ApiError> {
        let key = (runtime.clone(), event.source, event.dedupe_key.clone());
        let known = match step.keys.get(&key) {
            Some(known) => Some(known.clone()),
            None => events::content_of(&self.reader, runtime, event.source, &event.dedupe_key).map_err(unreadable)?,
        };
        match known {
            None => {
                step.keys.insert(key, (event.order.event_id.clone(), event.content_hash.clone()));
                Ok(None)
            }
            Some((id, content)) if content == event.content_hash => Ok(Some(id)),
            Some(_) => Err(conflict(&event.dedupe_key)),
        }
    }

    /// A runtime began, or a turn: it may be the one that events have been waiting for. One that is bound may tell a session
    /// by which others are.
    pub(super) fn bind_waiting(&mut self, step: &mut Step) {
        while self.bind_some(step) {}
    }

    fn bind_some(&mut self, step: &mut Step) -> bool {
        let bind = |event: &EventRow| {
            let from = event.whereabouts.as_ref().filter(|_| event.doubt.is_none())?;
            Some(self.bind(from, event.order.event_time))
        };
        // Before any of them is taken: each may be a reason to doubt another.
        let found: Vec<Option<Result<RuntimeId, Unbound>>> = self.waiting.iter().map(bind).collect();
        let any = found.iter().any(|found| matches!(found, Some(Ok(_))));
        for (mut event, found) in self.waiting.take().into_iter().zip(found) {
            match found {
                Some(Ok(runtime)) => self.bind_late(event, runtime, step),
                Some(Err(Unbound::Ambiguous)) => {
                    event.doubt = Some(Unbound::Ambiguous);
                    self.waiting.push(event);
                }
                _ => self.waiting.push(event),
            }
        }
        any
    }

    fn bind_late(&mut self, event: EventRow, runtime: RuntimeId, step: &mut Step) {
        match self.earlier(&runtime, &event, step) {
            Ok(None) => {
                self.hear(&runtime, &event, step);
                step.changes.push(Change::BindEvent { event: Box::new(event), runtime });
            }
            // It came by another way in the meantime.
            _ => step.changes.push(Change::DropEvent { event_id: event.order.event_id, why: Unbound::NoCandidate }),
        }
    }

    pub(super) fn expires_at(&self, event: &EventRow) -> Timestamp {
        event.order.ingested_at.checked_add(self.settings.bind_ttl.0).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn drop_expired(&mut self, step: &mut Step) {
        while let Some(event) = self.waiting.oldest()
            && self.expires_at(event) <= step.now
        {
            let why = self.why_unbound(event);
            step.changes.push(Change::DropEvent { event_id: event.order.event_id.clone(), why });
            self.waiting.forget_oldest();
        }
    }

    fn why_unbound(&self, event: &EventRow) -> Unbound {
        match (&event.whereabouts, event.doubt) {
            (_, Some(why)) => why,
            // Somebody lives there, but not the one that was meant.
            (Some(from), None) if binding::somebody_lives_at(&self.fleet, from) => Unbound::NoCandidate,
            _ => Unbound::Expired,
        }
    }
}

fn receipt(event_id: String, status: ReceiptStatus, runtime: Option<&RuntimeId>) -> Receipt {
    Receipt { schema_version: SCHEMA_VERSION, event_id, status, runtime_id: runtime.map(RuntimeId::to_string) }
}

fn conflict(key: &str) -> ApiError {
    let message = format!("the key '{key}' belongs to another event");
    ApiError::new(ErrorCode::IdempotencyConflict, message).with_hint("give each event a key of its own")
}

fn no_such_runtime(id: &RuntimeId) -> ApiError {
    let error = ApiError::new(ErrorCode::RuntimeNotFound, format!("no runtime '{id}' lives now"));
    error.with_hint("agtmux list panes --json shows the runtime_id of every agent")
}

fn unreadable(error: rusqlite::Error) -> ApiError {
    tracing::error!(%error, "the database cannot be read");
    ApiError::new(ErrorCode::Internal, "the database cannot be read").with_hint("agtmux daemon logs")
}

pub(super) fn stopping() -> ApiError {
    ApiError::new(ErrorCode::NotStored, "the daemon is stopping").with_hint("try again in a moment")
}
