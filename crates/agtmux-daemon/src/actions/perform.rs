//! The steps common to all actions: check the caller, find the pane, take its lock, check the guards, record, run,
//! record.

use std::time::{Duration, Instant};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, ActionStatus};
use agtmux_core::refs::PaneRef;
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;
use uuid::Uuid;

use super::action_target::ActionTarget;
use super::idempotency::{is_valid_request_ref, request_content};
use super::{ActionFailure, ActionPane, Actions, RequestCaller, audit, guards, snapshots};
use crate::engine::{LocatedPane, ref_error};
use crate::store::SnapshotRow;

/// One action request, without the code that runs it.
pub(super) struct ActionRequest<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a ActionGuards,
    pub(super) caller: RequestCaller,
    /// A short description for the audit log.
    pub(super) summary: Option<String>,
    pub(super) text: Option<&'a str>,
    /// Serialized request. Distinguishes requests that use the same `request_ref`.
    pub(super) content: String,
    /// The request to relay if the pane is on a host with its own agtmux.
    pub(super) relayed: HubRequest,
}

/// The parts of a request that the audit log records.
pub(super) struct ActionDescription<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a ActionGuards,
    pub(super) caller: &'a RequestCaller,
    pub(super) summary: Option<&'a str>,
    pub(super) text: Option<&'a str>,
}

impl<'a> ActionRequest<'a> {
    pub(super) fn new(request: HubRequest, guards: &'a ActionGuards, caller: RequestCaller) -> Self {
        let (kind, content) = (request.kind(), request_content(&request));
        Self { kind, guards, caller, summary: None, text: None, content, relayed: request }
    }

    fn description(&self) -> ActionDescription<'_> {
        let Self { kind, guards, caller, summary: what, text, .. } = self;
        ActionDescription { kind: *kind, guards, caller, summary: what.as_deref(), text: *text }
    }
}

/// The most bytes of a reference that the audit log stores.
const MAX_REF_BYTES: usize = 512;

/// Whether an action takes the lock of its pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaneLocking {
    Exclusive,
    Unlocked,
}

/// How long a request waits for its locks in total. Most callers have given up by then and must not find it done
/// later.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

fn pane_busy() -> ApiError {
    let error = ApiError::new(ErrorCode::Timeout, "nothing was typed: other actions have kept the pane busy for 60 s");
    error.with_hint("agtmux audit   (shows the other actions); then try again")
}

fn request_still_running(name: &str) -> ApiError {
    let message = format!("request '{name}' is still running after 60 s; it was not started again");
    ApiError::new(ErrorCode::Timeout, message)
        .with_hint("agtmux audit   (shows its result); or repeat the command with the same request_ref")
}

impl Actions {
    /// Runs the action once if its guards hold, and records the result. Mutating actions take the lock of their pane.
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
        let _request_lock = match &request.guards.request_ref {
            Some(name) => match timeout_at(turn_by, self.0.request_locks.take(name.clone())).await {
                Ok(request_lock) => Some(request_lock),
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
                Ok((action_target, snapshot, _lock)) => {
                    let done = match action_target {
                        ActionTarget::Local(action_pane) => {
                            let done = act(&action_pane).await;
                            self.0.discovery.note_action(&action_pane.located.key.server.target);
                            done
                        }
                        ActionTarget::Remote(remote) => remote.relay(request.relayed.clone()).await,
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

    /// Rejects an invalid request and records the rejection.
    pub(super) async fn reject(&self, request: ActionRequest<'_>, error: ApiError) -> ApiError {
        let refused: Result<ActionOutcome<()>, ActionFailure> = Err(ActionFailure::refused(error.clone()));
        self.finish(self.new_record(&request.description()), &request, refused).await.err().unwrap_or(error)
    }

    /// Records the rejection of a request that could not be parsed.
    pub(crate) async fn reject_unreadable(
        &self,
        kind: ActionKind,
        guards: &ActionGuards,
        caller: &RequestCaller,
        error: ApiError,
    ) -> ApiError {
        let mut record = self.new_record(&ActionDescription { kind, guards, caller, summary: None, text: None });
        record.finished_at = Some(self.0.clock.now());
        (record.status, record.code) = (ActionStatus::Refused, Some(error.code));
        record.message = Some(audit::redacted_prefix(&error.message, audit::MAX_MESSAGE_BYTES));
        if let Err(error) = self.write_record(&record, "", None).await {
            tracing::error!(%error, action = record.action_id, "cannot record an action in the audit log");
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

    /// Runs all checks and records that the action begins. The returned lock is held while the action runs.
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
        // While the lock is held no other action types into the pane. Waiting for it may have taken long, so locate
        // the pane again.
        let lock = match order {
            PaneLocking::Exclusive => {
                let request_lock = timeout_at(turn_by, self.0.pane_locks.take(lock_name(&first))).await;
                Some(request_lock.map_err(|_| pane_busy())?)
            }
            PaneLocking::Unlocked => None,
        };
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        // The deadline may have passed while waiting for the lock.
        guards::check_deadline(guards, now)?;
        if !same_pane(&first, &located) {
            return Err(guards::runtime_stale("the pane changed while the request waited for other actions".into()));
        }
        let seen = self.0.snapshots.find(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, *kind, now)?;
        let snapshot = snapshots::take_snapshot(&located, now, self.snapshot_lifetime());
        record.snapshot_id = Some(snapshot.snapshot_id.clone());
        record_location(record, &located);
        if kind.is_mutating() {
            // An action that cannot be recorded does not run.
            self.write_record(record, &request.content, Some(&snapshot)).await?;
        }
        let action_target = self.action_target(located, guards.force_stale)?;
        Ok((action_target, snapshot, lock))
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
            // The action has run. Returning an error would make the caller repeat it.
            tracing::error!(%error, action = record.action_id, "cannot record an action in the audit log");
        }
        answer
    }

    fn snapshot_lifetime(&self) -> SignedDuration {
        let lifetime = self.config().actions.snapshot_lifetime.0;
        SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX)
    }

    /// Takes a snapshot that a later action can use as a guard.
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
    record.runtime_id = located.agent.as_ref().map(|agent| agent.runtime.id.to_string());
}

fn lock_name(located: &LocatedPane) -> String {
    let key = &located.key;
    format!("{} {} {}", key.server.target, key.server.server, key.pane)
}

fn same_pane(one: &LocatedPane, other: &LocatedPane) -> bool {
    let identity = |located: &LocatedPane| {
        let runtime = located.agent.as_ref().map(|agent| agent.runtime.id.clone());
        (located.key.clone(), located.generation, located.pane.epoch, located.pane.pid, runtime)
    };
    identity(one) == identity(other)
}
