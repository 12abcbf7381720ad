//! The steps common to all actions: check the caller, find the pane, take its lock, check the guards, record the start,
//! run the action, record the result.

use std::time::{Duration, Instant};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, ActionStatus};
use agtmux_core::fleet::PaneKey;
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout_at;
use uuid::Uuid;

use super::action_target::ActionTarget;
use super::failure::name_reference;
use super::idempotency::{is_valid_request_ref, request_content};
use super::{ActionPane, Actions, RequestCaller, audit, guards, snapshots};
use crate::engine::{LocatedPane, SubmissionProgress, ref_error};
use crate::remote::RemotePane;
use crate::store::SnapshotRow;

/// The data of one action request.
pub(super) struct ActionRequest<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a ActionGuards,
    pub(super) caller: RequestCaller,
    /// A short description of the action for the audit log.
    pub(super) summary: Option<String>,
    pub(super) text: Option<&'a str>,
    /// The serialized request. A request is refused if an earlier one had the same `request_ref` but different
    /// contents.
    pub(super) content: String,
    /// Whether the action must wait until no other action types into the pane.
    pub(super) locks_pane: bool,
    /// The request to relay if the pane is on a host with its own agtmux.
    pub(super) relayed: HubRequest,
}

impl<'a> ActionRequest<'a> {
    pub(super) fn new(request: HubRequest, guards: &'a ActionGuards, caller: RequestCaller) -> Self {
        let (kind, content) = (request.kind(), request_content(&request));
        Self {
            kind,
            guards,
            caller,
            summary: None,
            text: None,
            content,
            locks_pane: kind.is_mutating(),
            relayed: request,
        }
    }
}

/// The audit log stores at most this many bytes of the reference that a request uses for its pane.
const MAX_REF_BYTES: usize = 512;

/// How long a request waits in total until earlier actions on the pane, and earlier requests with the same
/// `request_ref`, have ended. After this time the request fails, because most callers have given up by then.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

fn pane_busy() -> ApiError {
    let error = ApiError::new(ErrorCode::Timeout, "nothing was typed: other actions have kept the pane busy for 60 s");
    error.with_hint("agtmux audit   (shows the other actions); then try again")
}

fn request_still_running(name: &str) -> ApiError {
    let message = format!("request '{name}' is still running after 60 s; agtmux did not start it a second time");
    ApiError::new(ErrorCode::Timeout, message)
        .with_hint("agtmux audit   (shows the result of the request); or repeat the command with the same request_ref")
}

impl Actions {
    /// Runs the action once if its guards hold, and records the result in the audit log.
    pub(super) async fn perform<T: Serialize + DeserializeOwned>(
        &self,
        request: ActionRequest<'_>,
        act: impl AsyncFnOnce(&ActionPane<'_>) -> ApiResult<T>,
    ) -> ApiResult<ActionOutcome<T>> {
        let (started, turn_by) = (Instant::now(), tokio::time::Instant::now() + LOCK_TIMEOUT);
        let mut record = self.record_of(&request);
        // This lock is held until the result is recorded.
        let request_lock = self.lock_request(request.guards, turn_by).await;
        let earlier = match &request_lock {
            Ok(_) => self.earlier_outcome(&request).await,
            Err(error) => Err(error.clone()),
        };
        let outcome = match earlier {
            Ok(Some(earlier)) => return earlier,
            Ok(None) => {
                let done = self.run(&request, &mut record, turn_by, act).await;
                done.map(|(snapshot, report)| outcome(record.action_id.clone(), &snapshot, started.elapsed(), report))
            }
            Err(error) => Err(error),
        };
        self.finish(record, &request, outcome).await
    }

    /// Runs an action that has no pane yet, once, and records it. `act` gets the id of the action.
    pub(super) async fn perform_without_pane<T: Serialize + DeserializeOwned>(
        &self,
        request: ActionRequest<'_>,
        act: impl AsyncFnOnce(String) -> ApiResult<ActionOutcome<T>>,
    ) -> ApiResult<ActionOutcome<T>> {
        let turn_by = tokio::time::Instant::now() + LOCK_TIMEOUT;
        let mut record = self.record_of(&request);
        let request_lock = self.lock_request(request.guards, turn_by).await;
        let earlier = match &request_lock {
            Ok(_) => self.earlier_outcome(&request).await,
            Err(error) => Err(error.clone()),
        };
        let outcome = match earlier {
            Ok(Some(earlier)) => return earlier,
            Ok(None) => match guards::check_deadline(request.guards, self.0.clock.now()) {
                Ok(()) => match self.write_record(&record, &request.content, None).await {
                    Ok(()) => act(record.action_id.clone()).await,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        if let Ok(done) = &outcome {
            record.target = Some(done.target.clone());
            record.server = Some(done.server.clone());
            record.pane_id = Some(done.pane_id.clone());
            record.runtime_id = done.runtime_id.clone();
        }
        self.finish(record, &request, outcome).await
    }

    async fn lock_request(
        &self,
        guards: &ActionGuards,
        turn_by: tokio::time::Instant,
    ) -> ApiResult<Option<OwnedMutexGuard<()>>> {
        let Some(name) = &guards.request_ref else { return Ok(None) };
        let lock = timeout_at(turn_by, self.0.request_locks.take(name.clone())).await;
        lock.map(Some).map_err(|_| request_still_running(name))
    }

    /// Runs the action in its pane, here or on another host.
    async fn run<T: DeserializeOwned>(
        &self,
        request: &ActionRequest<'_>,
        record: &mut ActionRecord,
        turn_by: tokio::time::Instant,
        act: impl AsyncFnOnce(&ActionPane<'_>) -> ApiResult<T>,
    ) -> ApiResult<(SnapshotRow, T)> {
        let (action_target, snapshot, _lock) = self.prepare(turn_by, request, record).await?;
        let done = match action_target {
            ActionTarget::Local(pane) => {
                let done = act(&pane).await;
                self.0.discovery.note_action(&pane.located.key.server.target);
                done
            }
            ActionTarget::Remote(remote) => self.relay(&remote, &request.relayed).await,
        };
        if request.kind.is_mutating() && done.as_ref().map_or_else(|error| error.done_something, |_| true) {
            self.0.snapshots.mark_used(request.guards);
        }
        Ok((snapshot, done?))
    }

    /// Relays the action to the daemon on the pane's host. If the action submits a text, this function first tells the
    /// local engine. The other daemon also reports the submission, but its report may arrive after the reply.
    async fn relay<T: DeserializeOwned>(&self, remote: &RemotePane, action: &HubRequest) -> ApiResult<T> {
        let agent = remote.located.agent.as_ref().filter(|_| action.submits_text());
        let Some(runtime) = agent.map(|agent| agent.runtime.id.clone()) else {
            return remote.relay(action.clone()).await;
        };
        let engine = &self.0.engine;
        engine.note_submission(runtime.clone(), SubmissionProgress::Begins { relayed: true }).await;
        let done = remote.relay(action.clone()).await;
        if done.as_ref().is_err_and(|error: &ApiError| !error.done_something) {
            engine.note_submission(runtime, SubmissionProgress::Failed).await;
        }
        done
    }

    /// Rejects an invalid request and records the rejection in the audit log.
    pub(super) async fn reject(&self, request: ActionRequest<'_>, error: ApiError) -> ApiError {
        let refused: ApiResult<ActionOutcome<()>> = Err(error.clone());
        self.finish(self.record_of(&request), &request, refused).await.err().unwrap_or(error)
    }

    /// Records the rejection of a request that could not be parsed.
    pub(crate) async fn reject_unreadable(
        &self,
        kind: ActionKind,
        guards: &ActionGuards,
        caller: &RequestCaller,
        error: ApiError,
    ) -> ApiError {
        self.write_result(self.new_record(kind, guards, caller, None, None), "", Some(&error)).await;
        error
    }

    fn record_of(&self, request: &ActionRequest<'_>) -> ActionRecord {
        self.new_record(request.kind, request.guards, &request.caller, request.summary.as_deref(), request.text)
    }

    pub(super) fn new_record(
        &self,
        kind: ActionKind,
        guards: &ActionGuards,
        caller: &RequestCaller,
        summary: Option<&str>,
        text: Option<&str>,
    ) -> ActionRecord {
        ActionRecord {
            action_id: Uuid::now_v7().simple().to_string(),
            kind,
            at: self.0.clock.now(),
            finished_at: None,
            caller: self.caller_record(caller, guards.client.as_ref()),
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
            what: summary.map(str::to_owned),
            text: audit::stored_text(self.config(), text),
            bytes: text.map(|text| text.len() as u64),
            event_ids: Vec::new(),
            result: None,
        }
    }

    /// Runs all checks and records that the action begins. The caller must keep the returned lock until the action has
    /// ended.
    async fn prepare(
        &self,
        turn_by: tokio::time::Instant,
        request: &ActionRequest<'_>,
        record: &mut ActionRecord,
    ) -> ApiResult<(ActionTarget<'_>, SnapshotRow, Option<OwnedMutexGuard<()>>)> {
        let ActionRequest { kind, guards, .. } = request;
        guards::check_deadline(guards, self.0.clock.now())?;
        if kind.is_mutating() {
            self.refuse_agents_by_kind(&request.caller, *kind).await?;
        }
        let first = self.locate(&guards.r#ref).await?;
        record_location(record, &first);
        // While the lock is held no other action types into the pane. The pane may have changed during the wait for the
        // lock, so it is located again afterwards.
        let lock = match request.locks_pane {
            true => {
                let lock = timeout_at(turn_by, self.0.pane_locks.take(lock_name(&first.key))).await;
                Some(lock.map_err(|_| pane_busy())?)
            }
            false => None,
        };
        let located = self.locate(&guards.r#ref).await?;
        let now = self.0.clock.now();
        // The deadline may have passed while waiting for the lock.
        guards::check_deadline(guards, now)?;
        if !same_pane(&first, &located) {
            return Err(guards::runtime_stale("the pane changed while the request waited for other actions".into()));
        }
        let seen = self.0.snapshots.find(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, *kind, now)?;
        self.refuse_own_dialog(&request.caller, *kind, &located).await?;
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
        outcome: ApiResult<ActionOutcome<T>>,
    ) -> ApiResult<ActionOutcome<T>> {
        if let Ok(outcome) = &outcome {
            record.result = audit::stored_result(self.config(), request.kind, outcome);
            record.event_ids = audit::event_ids(record.result.as_ref());
        }
        self.write_result(record, &request.content, outcome.as_ref().err()).await;
        outcome.map_err(|error| name_reference(error, &request.guards.r#ref))
    }

    pub(super) async fn locate(&self, reference: &str) -> ApiResult<LocatedPane> {
        self.0.engine.locate(reference.parse().map_err(|error| ref_error(&error))?).await
    }

    fn snapshot_lifetime(&self) -> SignedDuration {
        let lifetime = self.config().actions.snapshot_lifetime.0;
        SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX)
    }

    /// Takes a snapshot that a later action can use as a guard.
    pub(crate) async fn snapshot(&self, guards: &ActionGuards) -> ApiResult<ActionSnapshot> {
        let (located, row) = self.look(guards, self.snapshot_lifetime()).await?;
        let shown = snapshots::to_wire(&row, &located);
        self.0.snapshots.insert(row);
        Ok(shown)
    }

    /// Locates a pane and checks the guards, for a request that does not change the pane. Returns the pane and a
    /// snapshot of it.
    pub(super) async fn look(
        &self,
        guards: &ActionGuards,
        lifetime: SignedDuration,
    ) -> ApiResult<(LocatedPane, SnapshotRow)> {
        let located = self.locate(&guards.r#ref).await?;
        let now = self.0.clock.now();
        guards::check_deadline(guards, now)?;
        let seen = self.0.snapshots.find(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, ActionKind::ViewOutput, now)?;
        let snapshot = snapshots::take_snapshot(&located, now, lifetime);
        Ok((located, snapshot))
    }
}

pub(super) fn outcome<T>(action_id: String, snapshot: &SnapshotRow, latency: Duration, report: T) -> ActionOutcome<T> {
    ActionOutcome {
        schema_version: SCHEMA_VERSION,
        action_id,
        snapshot_id: snapshot.snapshot_id.clone(),
        runtime_id: snapshot.runtime_id.clone(),
        target: snapshot.server.target.to_string(),
        server: snapshot.server.server.to_string(),
        pane_id: snapshot.pane.to_string(),
        latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
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

pub(super) fn lock_name(key: &PaneKey) -> String {
    format!("{} {} {}", key.server.target, key.server.server, key.pane)
}

fn same_pane(one: &LocatedPane, other: &LocatedPane) -> bool {
    let identity = |located: &LocatedPane| {
        let runtime = located.agent.as_ref().map(|agent| agent.runtime.id.clone());
        (located.key.clone(), located.generation, located.pane.epoch, located.pane.pid, runtime)
    };
    identity(one) == identity(other)
}
