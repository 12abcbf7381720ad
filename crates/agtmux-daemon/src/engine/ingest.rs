//! Events that are brought from outside: bound to a runtime, taken once, turned into statements.

use agtmux_agents::generic;
use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{Receipt, ReceiptStatus};
use agtmux_core::binding::{self, Unbound, Whereabouts};
use agtmux_core::engine as states;
use agtmux_core::evidence::{Rule, Source, Stand, Statement};
use agtmux_core::ordering::{OrderKey, trusted_time};
use agtmux_core::runtime::RuntimeId;
use jiff::{SignedDuration, Timestamp};

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
}

#[derive(Debug)]
pub(crate) enum From {
    Runtime(RuntimeId),
    Pane(Whereabouts),
}

impl Engine {
    pub(super) fn ingest(&mut self, incoming: Incoming, step: &mut Step) -> Result<Receipt, ApiError> {
        let event_time = trusted_time(incoming.event_time, step.now);
        let (runtime, whereabouts) = match incoming.from {
            From::Runtime(id) if self.states.knows(&id) => (Some(id), None),
            From::Runtime(id) => return Err(no_such_runtime(&id)),
            From::Pane(from) => (binding::bind(&self.fleet, &from, event_time).ok(), Some(from)),
        };
        let event = EventRow {
            order: OrderKey {
                source_seq: incoming.source_seq,
                event_time,
                ingested_at: step.now,
                event_id: incoming.event_id,
            },
            runtime: runtime.clone(),
            whereabouts,
            event_type: incoming.event_type,
            source: incoming.source,
            source_event_id: incoming.source_event_id,
            dedupe_key: incoming.dedupe_key,
            content_hash: incoming.content_hash,
            payload: incoming.payload,
        };
        let Some(runtime) = runtime else { return Ok(self.keep_waiting(event, step)) };
        if let Some(earlier) = self.earlier(&runtime, &event, step)? {
            return Ok(receipt(earlier, ReceiptStatus::Duplicate, Some(&runtime)));
        }
        step.changes.push(Change::PutEvent(Box::new(event.clone())));
        self.hear(&runtime, &event, step);
        Ok(receipt(event.order.event_id, ReceiptStatus::Bound, Some(&runtime)))
    }

    fn keep_waiting(&mut self, event: EventRow, step: &mut Step) -> Receipt {
        let same = |other: &&EventRow| {
            (&other.whereabouts, other.source, &other.dedupe_key)
                == (&event.whereabouts, event.source, &event.dedupe_key)
        };
        if let Some(earlier) = self.waiting.iter().find(same) {
            return receipt(earlier.order.event_id.clone(), ReceiptStatus::Duplicate, None);
        }
        step.changes.push(Change::PutEvent(Box::new(event.clone())));
        let receipt = receipt(event.order.event_id.clone(), ReceiptStatus::PendingBind, None);
        self.waiting.push_back(event);
        receipt
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
            Some(_) => {
                let message = format!("the key '{}' belongs to another event", event.dedupe_key);
                Err(ApiError::new(ErrorCode::IdempotencyConflict, message)
                    .with_hint("give each event a key of its own"))
            }
        }
    }

    fn hear(&mut self, runtime: &RuntimeId, event: &EventRow, step: &mut Step) {
        for stand in generic::stands(&event.event_type) {
            let statement = Box::new(self.statement(event, *stand));
            let input = states::Input::Heard { runtime: runtime.clone(), statement };
            self.decide(input, Some(event.order.event_id.clone()), step);
        }
    }

    fn statement(&self, event: &EventRow, stand: Stand) -> Statement {
        let running = || SignedDuration::try_from(self.settings.running_ttl.0).unwrap_or(SignedDuration::MAX);
        Statement {
            source: event.source,
            stand,
            conclusive: true,
            as_of: event.order.event_time,
            settled: true,
            ttl: (stand == Stand::Running).then(running),
            order: event.order.clone(),
            rule: Rule { name: generic::RULE.into(), version: generic::RULE_VERSION },
            excerpt: event.event_type.clone(),
        }
    }

    /// A runtime began: it may be the one that events have been waiting for.
    pub(super) fn bind_waiting(&mut self, step: &mut Step) {
        for event in std::mem::take(&mut self.waiting) {
            let bound = event
                .whereabouts
                .as_ref()
                .and_then(|from| binding::bind(&self.fleet, from, event.order.event_time).ok());
            let Some(runtime) = bound else {
                self.waiting.push_back(event);
                continue;
            };
            match self.earlier(&runtime, &event, step) {
                Ok(None) => {
                    let bind = Change::BindEvent { event: Box::new(event.clone()), runtime: runtime.clone() };
                    step.changes.push(bind);
                    self.hear(&runtime, &event, step);
                }
                // It came by another way in the meantime.
                _ => step.changes.push(Change::DropEvent { event_id: event.order.event_id, why: Unbound::NoCandidate }),
            }
        }
    }

    pub(super) fn expires_at(&self, event: &EventRow) -> Timestamp {
        event.order.ingested_at.checked_add(self.settings.bind_ttl.0).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn drop_expired(&mut self, step: &mut Step) {
        while let Some(event) = self.waiting.front()
            && self.expires_at(event) <= step.now
        {
            let why = self.why_unbound(event);
            step.changes.push(Change::DropEvent { event_id: event.order.event_id.clone(), why });
            self.waiting.pop_front();
        }
    }

    fn why_unbound(&self, event: &EventRow) -> Unbound {
        let Some(from) = &event.whereabouts else { return Unbound::NoCandidate };
        match binding::bind(&self.fleet, from, event.order.event_time) {
            Err(Unbound::Ambiguous) => Unbound::Ambiguous,
            // Somebody lives there, but not the one that was meant.
            _ if binding::somebody_lives_at(&self.fleet, from) => Unbound::NoCandidate,
            _ => Unbound::Expired,
        }
    }
}

fn receipt(event_id: String, status: ReceiptStatus, runtime: Option<&RuntimeId>) -> Receipt {
    Receipt { schema_version: SCHEMA_VERSION, event_id, status, runtime_id: runtime.map(RuntimeId::to_string) }
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
