//! The frame around every action: who asks, what is meant, whether it is still so; done once, and written down.

use std::time::{Duration, Instant};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::collect::Ask;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, ActionRecord, ActionStatus, Guards, Snapshot};
use agtmux_core::refs::Ref;
use agtmux_core::state::State;
use agtmux_tmux::{PaneGuard, Refused, TmuxServer, TypeError, Typing};
use jiff::SignedDuration;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use uuid::Uuid;

use super::caller::Behind;
use super::far::Stage;
use super::look::Look;
use super::{Actions, Asker, Failure, audit, guards, snapshots};
use crate::engine::{Living, Located, refusal};
use crate::observe::{self, Processes, Reach, Untold};
use crate::store::SnapshotRow;

/// A name for a request is not a place for a text.
const LONGEST_NAME: usize = 200;

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

/// Whether it waits for others who type into the same pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    InTurn,
    AtOnce,
}

/// A host whose line broke is waited for so long by those who only look.
const BACK_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Whoever waits longer for the others has mostly given up, and must not find it done later.
const TURN_WITHIN: Duration = Duration::from_secs(60);

fn nobodys_turn() -> ApiError {
    let error = ApiError::new(ErrorCode::Timeout, "nothing was typed: others have been typing there for a minute");
    error.with_hint("agtmux audit tells who; try again")
}

/// Where an action is done. Whatever is typed goes through its guard.
pub(super) struct Scene<'a> {
    pub(super) actions: &'a Actions,
    pub(super) located: Located,
    pub(super) tmux: TmuxServer,
    pub(super) processes: Processes,
    pub(super) guard: PaneGuard,
    pub(super) forced: bool,
}

impl Scene<'_> {
    /// The agent there, or a refusal.
    pub(super) fn agent(&self) -> Result<&Living, Failure> {
        self.located.living.as_ref().ok_or_else(|| {
            let pane = self.located.key.pane;
            Failure::precondition(format!("no agent lives in {pane}"), "agtmux list panes")
        })
    }

    /// Refused, because nobody tells what runs there.
    pub(super) fn unseen(&self, why: &Untold) -> Failure {
        let target = &self.located.key.server.target;
        let error = ApiError::new(ErrorCode::TargetUnreachable, format!("nothing was done on {target}: {why}"));
        Failure::refused(error.with_hint(format!("agtmux target doctor {target}")))
    }

    /// Refused unless whoever lived there when it was looked at has the terminal still: an agent that ends leaves its screen
    /// behind, and what is meant for it would be a command to its shell.
    pub(super) async fn same_resident(&self) -> Result<(), Failure> {
        let tree = self.processes.try_tree(self.guard.pane_pid).await.map_err(|untold| self.unseen(&untold))?;
        let now = tree.and_then(|tree| observe::resident(&self.actions.0.discovery.registry(), &tree));
        let agent = self.located.living.as_ref().filter(|living| !living.runtime.agent_type.is_task());
        let Some(living) = agent else {
            // What was meant for a shell is not for an agent that has been started in it since.
            return match now.filter(|now| !now.suspended) {
                None => Ok(()),
                Some(_) => Err(Failure::refused(guards::stale("nothing was typed: an agent was started there".into()))),
            };
        };
        if now.is_some_and(|now| now.process == living.runtime.process && !now.suspended) {
            return Ok(());
        }
        let message = "nothing was typed: the agent has ended, or something else has its terminal";
        Err(Failure::refused(guards::stale(message.into())))
    }

    /// Types, if the pane is the one that is meant, and so is whoever lives there.
    pub(super) async fn types(&self, typing: Typing<'_>) -> Result<(), Failure> {
        self.same_resident().await?;
        self.types_now(typing).await
    }

    /// The same, if a look allows it. The look is the last thing before: to find out who lives there may take long, and
    /// somebody at the pane may do something meanwhile.
    pub(super) async fn types_seeing(
        &self,
        typing: Typing<'_>,
        allows: impl FnOnce(&Look) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.same_resident().await?;
        allows(&self.look().await?)?;
        self.types_now(typing).await
    }

    async fn types_now(&self, typing: Typing<'_>) -> Result<(), Failure> {
        match self.tmux.type_into(self.guard, typing).await {
            // Copy mode would take what is typed: it is left first, where that is allowed.
            Err(TypeError::Refused(Refused::InMode)) if self.actions.config().tmux_bridge.leave_copy_mode => {
                let left = self.tmux.type_into(self.guard, Typing::LeaveMode).await;
                left.map_err(|error| Failure::refused(Failure::from(error).error))?;
                Ok(self.tmux.type_into(self.guard, typing).await?)
            }
            done => Ok(done?),
        }
    }

    /// The way there, once its host is back after the line broke. Only for what changes nothing.
    pub(super) async fn back(&self) -> Option<TmuxServer> {
        let deadline = Instant::now() + BACK_WITHIN;
        while Instant::now() < deadline {
            if let Some(reach) = self.actions.0.discovery.reach(&self.located.key.server) {
                return Some(reach.tmux);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        None
    }

    pub(super) fn state(&self) -> Option<State> {
        self.located.living.as_ref().map(|living| living.record.state)
    }
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
        let mut record = self.begin(&request.described());
        let _turn = match &request.guards.request_ref {
            Some(name) => match timeout(TURN_WITHIN, self.0.requests.take(name.clone())).await {
                Ok(turn) => Some(turn),
                Err(_) => return self.finish(record, &request, Err(Failure::refused(nobodys_turn()))).await,
            },
            None => None,
        };
        let outcome = match self.earlier(&request).await {
            Ok(Some(earlier)) => return earlier,
            Ok(None) => match self.prepare(order, &request, &mut record).await {
                Ok((stage, snapshot, _lock)) => {
                    let done = match stage {
                        Stage::Here(scene) => {
                            let done = act(&scene).await;
                            self.0.discovery.acted(&scene.located.key.server.target);
                            done
                        }
                        Stage::There(far) => far.relay(request.kind, request.guards, request.ask).await,
                    };
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

    pub(super) fn begin(&self, request: &Described<'_>) -> ActionRecord {
        let guards = request.guards;
        ActionRecord {
            action_id: Uuid::now_v7().simple().to_string(),
            kind: request.kind,
            at: self.0.clock.now(),
            finished_at: None,
            caller: self.describe(request.asker, guards.client.as_ref()),
            r#ref: audit::harmless(&guards.r#ref.chars().take(512).collect::<String>()),
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
                let turn = timeout(TURN_WITHIN, self.0.panes.take(lock_name(&first))).await;
                Some(turn.map_err(|_| nobodys_turn())?)
            }
            Order::AtOnce => None,
        };
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
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

    pub(super) fn scene(&self, located: Located, forced: bool) -> Result<Scene<'_>, ApiError> {
        let Some(Reach { tmux, processes }) = self.0.discovery.reach(&located.key.server) else {
            return Err(match located.key.server.target.is_local() {
                true => guards::stale("its tmux server is not there".into()),
                false => guards::out_of_reach(&located.key.server.target),
            });
        };
        let guard = PaneGuard {
            server_pid: located.generation.pid,
            server_start: located.generation.start_time,
            pane: located.key.pane.0,
            pane_pid: located.pane.pid,
        };
        Ok(Scene { actions: self, located, tmux, processes, guard, forced })
    }

    async fn refuse_agents(&self, asker: &Asker, kind: ActionKind) -> Result<(), ApiError> {
        self.refuse_agents_to_do(asker, kind.as_str()).await
    }

    /// Unless the settings let them.
    pub(crate) async fn refuse_agents_to(&self, asker: &Asker, what: &str) -> Result<(), ApiError> {
        match self.config().actions.allow_from_agents {
            true => Ok(()),
            false => self.refuse_agents_to_do(asker, what).await,
        }
    }

    async fn refuse_agents_to_do(&self, asker: &Asker, what: &str) -> Result<(), ApiError> {
        let message = match self.behind(asker).await {
            Behind::Somebody => return Ok(()),
            Behind::Agent(agent) => format!("{agent} asked for this, and an agent may not {what} by itself"),
            Behind::Unknown => "who asks cannot be told any more, and an agent may not ask for itself".into(),
        };
        let error = ApiError::new(ErrorCode::CallerIsAgent, message);
        Err(error.with_hint("run it yourself, or set actions.allow_from_agents in the configuration"))
    }

    /// What was done under this name before, if anything was.
    async fn earlier<T: DeserializeOwned>(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<Result<ActionOutcome<T>, ApiError>>, ApiError> {
        let Some(name) = &request.guards.request_ref else { return Ok(None) };
        if !is_name(name) {
            let message = format!("a request_ref has 1 to {LONGEST_NAME} printable characters");
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("use a UUID, or a short name"));
        }
        let Some(row) = self.stored_request(name).await? else { return Ok(None) };
        if row.content_hash != audit::hash(&request.content) {
            let error = ApiError::new(ErrorCode::IdempotencyConflict, format!("'{name}' names another request"));
            return Err(error.with_hint("give each request a name of its own"));
        }
        let record = row.record;
        let result = record.result.clone().and_then(|value| serde_json::from_value::<ActionOutcome<T>>(value).ok());
        match (record.status, result) {
            (ActionStatus::Done, Some(outcome)) => Ok(Some(Ok(ActionOutcome { repeated: true, ..outcome }))),
            (ActionStatus::Failed, _) => {
                let code = record.code.unwrap_or(ErrorCode::Unknown);
                let error = ApiError::new(code, record.message.unwrap_or_default());
                Ok(Some(Err(error.with_hint(format!("agtmux audit   (action {})", record.action_id)))))
            }
            _ => {
                let message = format!("'{name}' was begun before, and whether it was done is not known");
                let error = ApiError::new(ErrorCode::Precondition, message);
                Err(error.with_hint("look at the pane with agtmux view-output; then use another request_ref"))
            }
        }
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
                let done = failure.done_something;
                record.status = if done { ActionStatus::Failed } else { ActionStatus::Refused };
                record.code = Some(failure.error.code);
                record.message = Some(audit::harmless(&failure.error.message.chars().take(1000).collect::<String>()));
                Err(ApiError { done_something: done, ..failure.error })
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
        let row = snapshots::of(&located, self.0.clock.now(), self.snapshot_lifetime());
        let shown = snapshots::shown(&row, &located);
        self.0.snapshots.keep(row);
        Ok(shown)
    }
}

/// Tells one request from another. What it is guarded by, and who asks, may differ from one try to the next.
pub(super) fn content(kind: ActionKind, action: &impl Serialize) -> String {
    let mut value = serde_json::to_value(action).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        for name in ["snapshot_id", "nonce", "client", "not_after"] {
            fields.remove(name);
        }
    }
    format!("{} {value}", kind.as_str())
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control)
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
