//! The frame around every action: who asks, what is meant, whether it is still so; done once, and written down.

use std::time::{Duration, Instant};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::collect::Ask;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, ActionRecord, ActionStatus, Guards, Snapshot};
use agtmux_core::refs::Ref;
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;
use uuid::Uuid;

use super::far::Stage;
use super::repeated::is_name;
use super::{Actions, Asker, Failure, Scene, audit, guards, snapshots};
use crate::engine::{Located, refusal};
use crate::store::SnapshotRow;

/// What is asked, apart from how it is done.
pub(super) struct Request<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a Guards,
    pub(super) asker: Asker,
    /// For the audit log: what is done, and the text of it.
    pub(super) what: Option<String>,
    pub(super) text: Option<&'a str>,
    /// Tells one request from another under the same name.
    pub(super) content: String,
    /// What is asked of another host, under these conditions.
    pub(super) ask: &'a (dyn Fn(Guards) -> Ask + Sync),
}

/// What the audit log says of a request.
pub(super) struct Described<'a> {
    pub(super) kind: ActionKind,
    pub(super) guards: &'a Guards,
    pub(super) asker: &'a Asker,
    pub(super) what: Option<&'a str>,
    pub(super) text: Option<&'a str>,
}

impl Request<'_> {
    fn described(&self) -> Described<'_> {
        let Self { kind, guards, asker, what, text, .. } = self;
        Described { kind: *kind, guards, asker, what: what.as_deref(), text: *text }
    }
}

/// So many bytes of a reference are written down.
const LONGEST_REF: usize = 512;

/// Whether it waits for others who type into the same pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    InTurn,
    AtOnce,
}

/// Whoever waits longer for the others, all in all, has mostly given up, and must not find it done later.
const TURN_WITHIN: Duration = Duration::from_secs(60);

fn nobodys_turn() -> ApiError {
    let error = ApiError::new(ErrorCode::Timeout, "nothing was typed: others have been typing there for a minute");
    error.with_hint("agtmux audit tells who; try again")
}

fn still_being_done(name: &str) -> ApiError {
    let message = format!("nothing more was done: what '{name}' names is still being done since a minute");
    ApiError::new(ErrorCode::Timeout, message)
        .with_hint("agtmux audit tells what comes of it; ask again under the same name")
}

impl Actions {
    /// Does it once, if everything is as the caller thinks, and keeps what came of it. Whoever types waits for the others who
    /// type into the same pane.
    pub(super) async fn perform<T: Serialize + DeserializeOwned>(
        &self,
        request: Request<'_>,
        act: impl AsyncFnOnce(&Scene<'_>) -> Result<T, Failure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        let order = if request.kind.is_mutating() { Order::InTurn } else { Order::AtOnce };
        self.perform_in(order, request, act).await
    }

    pub(super) async fn perform_in<T: Serialize + DeserializeOwned>(
        &self,
        order: Order,
        request: Request<'_>,
        act: impl AsyncFnOnce(&Scene<'_>) -> Result<T, Failure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        let started = Instant::now();
        let turn_by = tokio::time::Instant::now() + TURN_WITHIN;
        let mut record = self.begin(&request.described());
        let _turn = match &request.guards.request_ref {
            Some(name) => match timeout_at(turn_by, self.0.requests.take(name.clone())).await {
                Ok(turn) => Some(turn),
                Err(_) => return self.finish(record, &request, Err(Failure::refused(still_being_done(name)))).await,
            },
            None => None,
        };
        let outcome = match self.earlier(&request).await {
            Ok(Some(earlier)) => return earlier,
            Ok(None) => match self.prepare(order, turn_by, &request, &mut record).await {
                Ok((stage, snapshot, _lock)) => {
                    let done = match stage {
                        Stage::Here(scene) => {
                            let done = act(&scene).await;
                            self.0.discovery.acted(&scene.located.key.server.target);
                            done
                        }
                        Stage::There(far) => far.relay(request.kind, request.guards, request.ask).await,
                    };
                    if request.kind.is_mutating()
                        && done.as_ref().map_or_else(|failure| failure.done_something, |_| true)
                    {
                        self.0.snapshots.spend(request.guards);
                    }
                    done.map(|report| outcome(&record, &snapshot, started, report))
                }
                Err(error) => Err(Failure::refused(error)),
            },
            Err(error) => Err(Failure::refused(error)),
        };
        self.finish(record, &request, outcome).await
    }

    /// For what cannot be done whatever is there: it is written down as well.
    pub(super) async fn turn_down(&self, request: Request<'_>, error: ApiError) -> ApiError {
        let refused: Result<ActionOutcome<()>, Failure> = Err(Failure::refused(error.clone()));
        self.finish(self.begin(&request.described()), &request, refused).await.err().unwrap_or(error)
    }

    /// For what cannot even be read: of it is written down who asked for it, and what can be told of whom.
    pub(crate) async fn unreadable(
        &self,
        kind: ActionKind,
        guards: &Guards,
        asker: &Asker,
        error: ApiError,
    ) -> ApiError {
        let mut record = self.begin(&Described { kind, guards, asker, what: None, text: None });
        record.finished_at = Some(self.0.clock.now());
        (record.status, record.code) = (ActionStatus::Refused, Some(error.code));
        record.message = Some(audit::shortened(&error.message, audit::LONGEST_MESSAGE));
        if let Err(error) = self.write(&record, "", None).await {
            tracing::error!(%error, action = record.action_id, "an action could not be written down");
        }
        error
    }

    pub(super) fn begin(&self, request: &Described<'_>) -> ActionRecord {
        let guards = request.guards;
        ActionRecord {
            action_id: Uuid::now_v7().simple().to_string(),
            kind: request.kind,
            at: self.0.clock.now(),
            finished_at: None,
            caller: self.describe(request.asker, guards.client.as_ref()),
            r#ref: audit::shortened(&guards.r#ref, LONGEST_REF),
            target: None,
            server: None,
            pane_id: None,
            runtime_id: None,
            snapshot_id: None,
            forced: guards.force_stale,
            request_ref: guards.request_ref.as_ref().filter(|name| is_name(name)).cloned(),
            status: ActionStatus::Begun,
            code: None,
            message: None,
            what: request.what.map(str::to_owned),
            text: audit::kept(self.config(), request.text),
            bytes: request.text.map(|text| text.len() as u64),
            event_ids: Vec::new(),
            result: None,
        }
    }

    /// Everything up to the moment in which it is done. The lock is held from here on.
    async fn prepare(
        &self,
        order: Order,
        turn_by: tokio::time::Instant,
        request: &Request<'_>,
        record: &mut ActionRecord,
    ) -> Result<(Stage<'_>, SnapshotRow, Option<tokio::sync::OwnedMutexGuard<()>>), ApiError> {
        let Request { kind, guards, .. } = request;
        guards::in_time(guards, self.0.clock.now())?;
        if kind.is_mutating() && !self.config().actions.allow_from_agents {
            self.refuse_agents(&request.asker, *kind).await?;
        }
        let reference: Ref = guards.r#ref.parse().map_err(|error| refusal(&error))?;
        let first = self.0.engine.locate(reference.clone()).await?;
        note_place(record, &first);
        // From here on nobody else types into it; what was found before has to be so still.
        let lock = match order {
            Order::InTurn => {
                let turn = timeout_at(turn_by, self.0.panes.take(lock_name(&first))).await;
                Some(turn.map_err(|_| nobodys_turn())?)
            }
            Order::AtOnce => None,
        };
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        // To wait for the others takes time.
        guards::in_time(guards, now)?;
        if !same_pane(&first, &located) {
            return Err(guards::stale("the pane changed while others were typing into it".into()));
        }
        let seen = self.0.snapshots.named(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, *kind, now)?;
        let snapshot = snapshots::of(&located, now, self.snapshot_lifetime());
        record.snapshot_id = Some(snapshot.snapshot_id.clone());
        note_place(record, &located);
        if kind.is_mutating() {
            // What cannot be written down is not done.
            self.write(record, &request.content, Some(&snapshot)).await?;
        }
        let stage = self.stage(located, guards.force_stale)?;
        Ok((stage, snapshot, lock))
    }

    async fn finish<T: Serialize>(
        &self,
        mut record: ActionRecord,
        request: &Request<'_>,
        outcome: Result<ActionOutcome<T>, Failure>,
    ) -> Result<ActionOutcome<T>, ApiError> {
        record.finished_at = Some(self.0.clock.now());
        let answer = match outcome {
            Ok(outcome) => {
                record.status = ActionStatus::Done;
                record.result = audit::result(self.config(), request.kind, &outcome);
                record.event_ids = audit::event_ids(record.result.as_ref());
                Ok(outcome)
            }
            Err(failure) => {
                record.status = if failure.done_something { ActionStatus::Failed } else { ActionStatus::Refused };
                record.code = Some(failure.error.code);
                record.message = Some(audit::shortened(&failure.error.message, audit::LONGEST_MESSAGE));
                Err(failure.told(&request.guards.r#ref))
            }
        };
        if let Err(error) = self.write(&record, &request.content, None).await {
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
    pub(crate) async fn snapshot(&self, guards: &Guards) -> Result<Snapshot, ApiError> {
        let reference: Ref = guards.r#ref.parse().map_err(|error| refusal(&error))?;
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        guards::in_time(guards, now)?;
        let seen = self.0.snapshots.named(guards, now)?;
        guards::check(guards, seen.as_ref(), &located, ActionKind::ViewOutput, now)?;
        let row = snapshots::of(&located, now, self.snapshot_lifetime());
        let shown = snapshots::shown(&row, &located);
        self.0.snapshots.keep(row);
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

fn note_place(record: &mut ActionRecord, located: &Located) {
    record.target = Some(located.key.server.target.to_string());
    record.server = Some(located.key.server.server.to_string());
    record.pane_id = Some(located.key.pane.to_string());
    record.runtime_id = located.living.as_ref().map(|living| living.runtime.id.to_string());
}

fn lock_name(located: &Located) -> String {
    let key = &located.key;
    format!("{} {} {}", key.server.target, key.server.server, key.pane)
}

fn same_pane(one: &Located, other: &Located) -> bool {
    let identity = |located: &Located| {
        let runtime = located.living.as_ref().map(|living| living.runtime.id.clone());
        (located.key.clone(), located.generation, located.pane.epoch, located.pane.pid, runtime)
    };
    identity(one) == identity(other)
}
