//! The frame around every action: who asks, what is meant, whether it is still so; done once, and written down.

use std::time::{Duration, Instant};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::collect::HubRequest;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, ActionStatus};
use agtmux_core::refs::PaneRef;
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;
use uuid::Uuid;

use super::idempotency::is_valid_request_ref;
use super::remote::ActionTarget;
use super::{ActionFailure, ActionPane, Actions, RequestCaller, audit, guards, snapshots};
use crate::engine::{LocatedPane, ref_error};
use crate::store::SnapshotRow;

/// What is asked, apart from how it is done.
pub(super) struct ActionRequest<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a ActionGuards,
    pub(super) caller: RequestCaller,
    /// For the audit log: what is done, and the text of it.
    pub(super) summary: Option<String>,
    pub(super) text: Option<&'a str>,
    /// Tells one request from another under the same name.
    pub(super) content: String,
    /// What is asked of another host, under these conditions.
    pub(super) remote_request: &'a (dyn Fn(ActionGuards) -> HubRequest + Sync),
}

/// What the audit log says of a request.
pub(super) struct ActionDescription<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a ActionGuards,
    pub(super) caller: &'a RequestCaller,
    pub(super) summary: Option<&'a str>,
    pub(super) text: Option<&'a str>,
}

impl ActionRequest<'_> {
    fn description(&self) -> ActionDescription<'_> {
        let Self { kind, guards, caller: asker, summary: what, text, .. } = self;
        ActionDescription { kind: *kind, guards, caller: asker, summary: what.as_deref(), text: *text }
    }
}

/// So many bytes of a reference are written down.
const MAX_REF_BYTES: usize = 512;

/// Whether it waits for others who type into the same pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaneLocking {
    Exclusive,
    Unlocked,
}

/// Whoever waits longer for the others, all in all, has mostly given up, and must not find it done later.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

fn pane_busy() -> ApiError {
    let error = ApiError::new(ErrorCode::Timeout, "nothing was typed: others have been typing there for a minute");
    error.with_hint("agtmux audit tells who; try again")
}

fn request_still_running(name: &str) -> ApiError {
    let message = format!("nothing more was done: what '{name}' names is still being done since a minute");
    ApiError::new(ErrorCode::Timeout, message)
        .with_hint("agtmux audit tells what comes of it; ask again under the same name")
}

impl Actions {
    /// Does it once, if everything is as the caller thinks, and keeps what came of it. Whoever types waits for the others who
    /// type into the same pane.
    pub(super) async fn perform<T: Serialize + DeserializeOwned>(
        &self,
        request: ActionRequest<'_>,
        act: impl AsyncFnOnce(&ActionPane<'_>) -> Result<T, ActionFailure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        let order = if request.kind.is_mutating() { PaneLocking::Exclusive } else { PaneLocking::Unlocked };
        self.perform_with_locking(order, request, act).await
    }

    pub(super) async fn perform_with_locking<T: Serialize + DeserializeOwned>(
        &self,
        order: PaneLocking,
        request: ActionRequest<'_>,
        act: impl AsyncFnOnce(&ActionPane<'_>) -> Result<T, ActionFailure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        let started = Instant::now();
        let turn_by = tokio::time::Instant::now() + LOCK_TIMEOUT;
        let mut record = self.new_record(&request.description());
        let _turn = match &request.guards.request_ref {
            Some(name) => match timeout_at(turn_by, self.0.request_locks.take(name.clone())).await {
                Ok(turn) => Some(turn),
                Err(_) => {
                    return self
                        .finish(record, &request, Err(ActionFailure::refused(request_still_running(name))))
                        .await;
                }
            },
            None => None,
        };
        let outcome = match self.earlier_outcome(&request).await {
            Ok(Some(earlier)) => return earlier,
            Ok(None) => match self.prepare(order, turn_by, &request, &mut record).await {
                Ok((stage, snapshot, _lock)) => {
                    let done = match stage {
                        ActionTarget::Local(scene) => {
                            let done = act(&scene).await;
                            self.0.discovery.note_action(&scene.located.key.server.target);
                            done
                        }
                        ActionTarget::Remote(far) => {
                            far.relay(request.kind, request.guards, request.remote_request).await
                        }
                    };
                    if request.kind.is_mutating()
                        && done.as_ref().map_or_else(|failure| failure.done_something, |_| true)
                    {
                        self.0.snapshots.mark_used(request.guards);
                    }
                    done.map(|report| outcome(&record, &snapshot, started, report))
                }
                Err(error) => Err(ActionFailure::refused(error)),
            },
            Err(error) => Err(ActionFailure::refused(error)),
        };
        self.finish(record, &request, outcome).await
    }

    /// For what cannot be done whatever is there: it is written down as well.
    pub(super) async fn reject(&self, request: ActionRequest<'_>, error: ApiError) -> ApiError {
        let refused: Result<ActionOutcome<()>, ActionFailure> = Err(ActionFailure::refused(error.clone()));
        self.finish(self.new_record(&request.description()), &request, refused).await.err().unwrap_or(error)
    }

    /// For what cannot even be read: of it is written down who asked for it, and what can be told of whom.
    pub(crate) async fn reject_unreadable(
        &self,
        kind: ActionKind,
        guards: &ActionGuards,
        asker: &RequestCaller,
        error: ApiError,
    ) -> ApiError {
        let mut record = self.new_record(&ActionDescription { kind, guards, caller: asker, summary: None, text: None });
        record.finished_at = Some(self.0.clock.now());
        (record.status, record.code) = (ActionStatus::Refused, Some(error.code));
        record.message = Some(audit::redacted_prefix(&error.message, audit::MAX_MESSAGE_BYTES));
        if let Err(error) = self.write_record(&record, "", None).await {
            tracing::error!(%error, action = record.action_id, "an action could not be written down");
        }
        error
    }

    pub(super) fn new_record(&self, request: &ActionDescription<'_>) -> ActionRecord {
        let guards = request.guards;
        ActionRecord {
            action_id: Uuid::now_v7().simple().to_string(),
            kind: request.kind,
            at: self.0.clock.now(),
            finished_at: None,
            caller: self.caller_record(request.caller, guards.client.as_ref()),
            r#ref: audit::redacted_prefix(&guards.r#ref, MAX_REF_BYTES),
            target: None,
            server: None,
            pane_id: None,
            runtime_id: None,
            snapshot_id: None,
            forced: guards.force_stale,
            request_ref: guards.request_ref.as_ref().filter(|name| is_valid_request_ref(name)).cloned(),
            status: ActionStatus::Begun,
            code: None,
            message: None,
            what: request.summary.map(str::to_owned),
            text: audit::stored_text(self.config(), request.text),
            bytes: request.text.map(|text| text.len() as u64),
            event_ids: Vec::new(),
            result: None,
        }
    }

    /// Everything up to the moment in which it is done. The lock is held from here on.
    async fn prepare(
        &self,
        order: PaneLocking,
        turn_by: tokio::time::Instant,
        request: &ActionRequest<'_>,
        record: &mut ActionRecord,
    ) -> Result<(ActionTarget<'_>, SnapshotRow, Option<tokio::sync::OwnedMutexGuard<()>>), ApiError> {
        let ActionRequest { kind, guards, .. } = request;
        guards::check_deadline(guards, self.0.clock.now())?;
        if kind.is_mutating() && !self.config().actions.allow_from_agents {
            self.refuse_agents(&request.caller, *kind).await?;
        }
        let reference: PaneRef = guards.r#ref.parse().map_err(|error| ref_error(&error))?;
        let first = self.0.engine.locate(reference.clone()).await?;
        record_location(record, &first);
        // From here on nobody else types into it; what was found before has to be so still.
        let lock = match order {
            PaneLocking::Exclusive => {
                let turn = timeout_at(turn_by, self.0.pane_locks.take(lock_name(&first))).await;
                Some(turn.map_err(|_| pane_busy())?)
            }
            PaneLocking::Unlocked => None,
        };
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        // To wait for the others takes time.
        guards::check_deadline(guards, now)?;
        if !same_pane(&first, &located) {
            return Err(guards::runtime_stale("the pane changed while others were typing into it".into()));
        }
        let seen = self.0.snapshots.find(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, *kind, now)?;
        let snapshot = snapshots::take_snapshot(&located, now, self.snapshot_lifetime());
        record.snapshot_id = Some(snapshot.snapshot_id.clone());
        record_location(record, &located);
        if kind.is_mutating() {
            // What cannot be written down is not done.
            self.write_record(record, &request.content, Some(&snapshot)).await?;
        }
        let stage = self.action_target(located, guards.force_stale)?;
        Ok((stage, snapshot, lock))
    }

    async fn finish<T: Serialize>(
        &self,
        mut record: ActionRecord,
        request: &ActionRequest<'_>,
        outcome: Result<ActionOutcome<T>, ActionFailure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        record.finished_at = Some(self.0.clock.now());
        let answer = match outcome {
            Ok(outcome) => {
                record.status = ActionStatus::Done;
                record.result = audit::stored_result(self.config(), request.kind, &outcome);
                record.event_ids = audit::event_ids(record.result.as_ref());
                Ok(outcome)
            }
            Err(failure) => {
                record.status = if failure.done_something { ActionStatus::Failed } else { ActionStatus::Refused };
                record.code = Some(failure.error.code);
                record.message = Some(audit::redacted_prefix(&failure.error.message, audit::MAX_MESSAGE_BYTES));
                Err(failure.into_api_error(&request.guards.r#ref))
            }
        };
        if let Err(error) = self.write_record(&record, &request.content, None).await {
            // It is done, and saying otherwise would have it done twice.
            tracing::error!(%error, action = record.action_id, "an action could not be written down");
        }
        answer
    }

    fn snapshot_lifetime(&self) -> SignedDuration {
        let lifetime = self.config().actions.snapshot_lifetime.0;
        SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX)
    }

    /// Looks, for somebody who will act on what was seen.
    pub(crate) async fn snapshot(&self, guards: &ActionGuards) -> Result<ActionSnapshot, ApiError> {
        let reference: PaneRef = guards.r#ref.parse().map_err(|error| ref_error(&error))?;
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        guards::check_deadline(guards, now)?;
        let seen = self.0.snapshots.find(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, ActionKind::ViewOutput, now)?;
        let row = snapshots::take_snapshot(&located, now, self.snapshot_lifetime());
        let shown = snapshots::to_wire(&row, &located);
        self.0.snapshots.insert(row);
        Ok(shown)
    }
}

fn outcome<T>(record: &ActionRecord, snapshot: &SnapshotRow, started: Instant, report: T) -> ActionOutcome<T> {
    ActionOutcome {
        schema_version: SCHEMA_VERSION,
        action_id: record.action_id.clone(),
        snapshot_id: snapshot.snapshot_id.clone(),
        runtime_id: snapshot.runtime_id.clone(),
        target: snapshot.server.target.to_string(),
        server: snapshot.server.server.to_string(),
        pane_id: snapshot.pane.to_string(),
        latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        repeated: false,
        report,
    }
}

fn record_location(record: &mut ActionRecord, located: &LocatedPane) {
    record.target = Some(located.key.server.target.to_string());
    record.server = Some(located.key.server.server.to_string());
    record.pane_id = Some(located.key.pane.to_string());
    record.runtime_id = located.agent.as_ref().map(|living| living.runtime.id.to_string());
}

fn lock_name(located: &LocatedPane) -> String {
    let key = &located.key;
    format!("{} {} {}", key.server.target, key.server.server, key.pane)
}

fn same_pane(one: &LocatedPane, other: &LocatedPane) -> bool {
    let identity = |located: &LocatedPane| {
        let runtime = located.agent.as_ref().map(|living| living.runtime.id.clone());
        (located.key.clone(), located.generation, located.pane.epoch, located.pane.pid, runtime)
    };
    identity(one) == identity(other)
}
