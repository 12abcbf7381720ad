//! Handles events that clients post: binds each event to a runtime, drops duplicates, and turns events into
//! observations.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EventReceipt, EventReceiptStatus};
use agtmux_core::binding::{self, BindFailure, EventOrigin};
use agtmux_core::evidence::Source;
use agtmux_core::ordering::{OrderKey, trusted_time};
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;
use serde_json::Value;

use super::{Engine, EngineStep};
use crate::store::{EventRow, StoreChange, StoredSender, events};

/// An event that has been parsed and redacted.
#[derive(Debug)]
pub(crate) struct IncomingEvent {
    pub(crate) event_id: String,
    pub(crate) address: EventAddress,
    pub(crate) source: Source,
    pub(crate) event_type: String,
    pub(crate) source_event_id: Option<String>,
    pub(crate) dedupe_key: String,
    pub(crate) source_seq: Option<u64>,
    pub(crate) event_time: Option<Timestamp>,
    pub(crate) content_hash: String,
    /// The part of the request body that the agent wrote.
    pub(crate) payload: Value,
    /// The request body in the form in which it is stored.
    pub(crate) body: Option<String>,
    /// Whether the event waited in the spool until the daemon started.
    pub(crate) was_spooled: bool,
    pub(crate) sender: Option<StoredSender>,
}

#[derive(Debug)]
pub(crate) enum EventAddress {
    Runtime(RuntimeId),
    Origin(EventOrigin),
}

impl Engine {
    pub(super) fn ingest(&mut self, incoming: IncomingEvent, step: &mut EngineStep) -> Result<EventReceipt, ApiError> {
        let event_time = match incoming.event_time {
            // A spooled event has a local timestamp, so its age is trusted.
            Some(time) if incoming.was_spooled => self.spooled_time(time, step.now),
            claimed => trusted_time(claimed, step.now),
        };
        let (runtime, origin) = match incoming.address {
            EventAddress::Runtime(id) if self.states.has_runtime(&id) => (Ok(id), None),
            EventAddress::Runtime(id) => return Err(no_such_runtime(&id)),
            EventAddress::Origin(origin) => (self.bind(&origin, event_time), Some(origin)),
        };
        let event = EventRow {
            order: OrderKey {
                source_seq: incoming.source_seq,
                event_time,
                ingested_at: step.now,
                event_id: incoming.event_id,
            },
            runtime: runtime.clone().ok(),
            origin,
            event_type: incoming.event_type,
            source: incoming.source,
            source_event_id: incoming.source_event_id,
            dedupe_key: incoming.dedupe_key,
            content_hash: incoming.content_hash,
            bind_failure: runtime.as_ref().err().copied().filter(|why| *why == BindFailure::Ambiguous),
            sender: incoming.sender,
        };
        let Ok(runtime) = runtime else { return self.hold_event(event, incoming.body, step) };
        if let Some(sender) = self.other_agent_behind(&event, &runtime) {
            return Err(about_other_agent(sender));
        }
        if let Some(earlier) = self.duplicate_of(&runtime, &event, step)? {
            return Ok(receipt(earlier, EventReceiptStatus::Duplicate, Some(&runtime)));
        }
        step.changes.push(StoreChange::PutEvent { event: Box::new(event.clone()), body: incoming.body });
        self.reduce_event(&runtime, &event, &incoming.payload, step);
        Ok(receipt(event.order.event_id, EventReceiptStatus::Bound, Some(&runtime)))
    }

    fn bind(&self, origin: &EventOrigin, event_time: Timestamp) -> Result<RuntimeId, BindFailure> {
        match binding::bind(&self.fleet, &self.ended_processes, origin, event_time) {
            Err(BindFailure::NoCandidate) => self.bind_shared(origin, event_time),
            bound => bound,
        }
    }

    fn hold_event(
        &mut self,
        event: EventRow,
        body: Option<String>,
        step: &mut EngineStep,
    ) -> Result<EventReceipt, ApiError> {
        if let Some(earlier) = self.unbound_events.same_key(&event) {
            return match earlier.content_hash == event.content_hash {
                true => Ok(receipt(earlier.order.event_id.clone(), EventReceiptStatus::Duplicate, None)),
                false => Err(conflict(&event.dedupe_key)),
            };
        }
        let receipt = receipt(event.order.event_id.clone(), EventReceiptStatus::PendingBind, None);
        self.unbound_events.push(event.clone());
        step.changes.push(StoreChange::PutEvent { event: Box::new(event), body });
        Ok(receipt)
    }

    /// Returns the id of an earlier event with the same key and content, if there is one. Fails if an earlier event has
    /// the same key but other content.
    fn duplicate_of(
        &self,
        runtime: &RuntimeId,
        event: &EventRow,
        step: &mut EngineStep,
    ) -> Result<Option<String>, ApiError> {
        let key = (runtime.clone(), event.source, event.dedupe_key.clone());
        let stored = match step.dedupe_keys.get(&key) {
            Some(stored) => Some(stored.clone()),
            None => {
                events::content_of(&self.reader, runtime, event.source, &event.dedupe_key).map_err(database_error)?
            }
        };
        match stored {
            None => {
                step.dedupe_keys.insert(key, (event.order.event_id.clone(), event.content_hash.clone()));
                Ok(None)
            }
            Some((id, content)) if content == event.content_hash => Ok(Some(id)),
            Some(_) => Err(conflict(&event.dedupe_key)),
        }
    }

    /// Binds pending events after a runtime or a turn has begun. Repeats until no more events can be bound: a bound
    /// event may report the session of its agent, and other pending events may name that session.
    pub(super) fn bind_unbound(&mut self, step: &mut EngineStep) {
        while self.bind_unbound_once(step) {}
    }

    fn bind_unbound_once(&mut self, step: &mut EngineStep) -> bool {
        let bind = |event: &EventRow| {
            let origin = event.origin.as_ref().filter(|_| event.bind_failure.is_none())?;
            Some(self.bind(origin, event.order.event_time))
        };
        // Bind all pending events before applying one of them, because each pending event may make another one
        // ambiguous.
        let found: Vec<Option<Result<RuntimeId, BindFailure>>> = self.unbound_events.iter().map(bind).collect();
        let any = found.iter().any(|found| matches!(found, Some(Ok(_))));
        for (mut event, found) in self.unbound_events.take_all().into_iter().zip(found) {
            match found {
                Some(Ok(runtime)) => self.bind_late(event, runtime, step),
                Some(Err(BindFailure::Ambiguous)) => {
                    event.bind_failure = Some(BindFailure::Ambiguous);
                    self.unbound_events.push(event);
                }
                _ => self.unbound_events.push(event),
            }
        }
        any
    }

    fn bind_late(&mut self, event: EventRow, runtime: RuntimeId, step: &mut EngineStep) {
        let is_own = self.other_agent_behind(&event, &runtime).is_none();
        match self.duplicate_of(&runtime, &event, step) {
            Ok(None) if is_own => {
                let payload = self.stored_payload(&event.order.event_id, step);
                self.reduce_event(&runtime, &event, &payload, step);
                step.changes.push(StoreChange::BindEvent { event: Box::new(event), runtime });
            }
            // Drop the event: it is a duplicate of an event that arrived in the meantime, or an agent reported it about
            // another agent.
            _ => step
                .changes
                .push(StoreChange::DropEvent { event_id: event.order.event_id, why: BindFailure::NoCandidate }),
        }
    }

    /// The agent that sent the event, if the event is about another agent and the settings forbid such events.
    fn other_agent_behind<'e>(&self, event: &'e EventRow, runtime: &RuntimeId) -> Option<&'e str> {
        let sender = event.sender.as_ref()?;
        let (own, agent) = (sender.own_processes.as_ref()?, sender.shown.agent.as_deref()?);
        let key = self.runtime_panes.get(runtime)?;
        let subject = self.fleet.pane(key)?.runtime.as_ref()?;
        let is_own = key.server.target.is_local() && own.contains(&subject.process.pid);
        // One process may serve several agents of its type, and may report about each of them. Such a process does not
        // descend from an agent in a pane.
        let is_shared = || {
            let shares = self.registry.agent(agent).is_some_and(|known| known.shares_process());
            shares && subject.agent_type.as_str() == agent && !self.is_below_agent(own)
        };
        (!is_own && !is_shared()).then_some(agent)
    }

    /// The payload of a pending event. Payloads are not kept in memory, so this function reads it from the current step
    /// or from the store.
    fn stored_payload(&self, event_id: &str, step: &EngineStep) -> Value {
        let stored = || events::body_of(&self.reader, event_id).ok().flatten();
        let body = step.body_of(event_id).map(str::to_owned).or_else(stored);
        let payload = |body: String| Some(serde_json::from_str::<Value>(&body).ok()?.get_mut("payload")?.take());
        body.and_then(payload).unwrap_or_default()
    }

    pub(super) fn expires_at(&self, event: &EventRow) -> Timestamp {
        event.order.ingested_at.checked_add(self.settings.bind_ttl.0).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn drop_expired(&mut self, step: &mut EngineStep) {
        while let Some(event) = self.unbound_events.oldest()
            && self.expires_at(event) <= step.now
        {
            let why = self.bind_failure(event);
            step.changes.push(StoreChange::DropEvent { event_id: event.order.event_id.clone(), why });
            self.unbound_events.remove_oldest();
        }
    }

    fn bind_failure(&self, event: &EventRow) -> BindFailure {
        match (&event.origin, event.bind_failure) {
            (_, Some(why)) => why,
            // The pane has an agent, but not the one that the event is about.
            (Some(origin), None) if binding::pane_has_agent(&self.fleet, origin) => BindFailure::NoCandidate,
            _ => BindFailure::Expired,
        }
    }
}

fn receipt(event_id: String, status: EventReceiptStatus, runtime: Option<&RuntimeId>) -> EventReceipt {
    EventReceipt { schema_version: SCHEMA_VERSION, event_id, status, runtime_id: runtime.map(RuntimeId::to_string) }
}

fn conflict(key: &str) -> ApiError {
    let message = format!("the key '{key}' was already used for another event");
    ApiError::new(ErrorCode::IdempotencyConflict, message).with_hint("use a different dedupe_key for each event")
}

fn about_other_agent(sender: &str) -> ApiError {
    let message = format!("the event comes from an agent ({sender}) and is about another agent");
    ApiError::new(ErrorCode::CallerIsAgent, message).with_hint(
        "send the event from the agent that the event describes, or set events.allow_from_other_agents in the \
         configuration",
    )
}

fn no_such_runtime(id: &RuntimeId) -> ApiError {
    let error = ApiError::new(ErrorCode::RuntimeNotFound, format!("no running agent has the runtime id '{id}'"));
    error.with_hint("agtmux list panes --json shows the runtime_id of every agent")
}

fn database_error(error: rusqlite::Error) -> ApiError {
    tracing::error!(%error, "the database cannot be read");
    ApiError::new(ErrorCode::Internal, "the database cannot be read").with_hint("agtmux daemon logs")
}

pub(super) fn stopping_error() -> ApiError {
    ApiError::new(ErrorCode::NotStored, "the daemon is stopping").with_hint("try again in a moment")
}
