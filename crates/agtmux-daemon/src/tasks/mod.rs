//! Managed tasks: background commands in windows of tmux sessions that agtmux owns.
//!
//! Each task has two helper processes that need no daemon: a supervisor that records how the program ended, and a
//! reader that logs its output. Both helpers write files into one directory, which the daemon watches. This module
//! reads the files, checks the sessions in tmux, and turns the results into inputs for the engine. The engine owns the
//! state machine of each session. A daemon that restarts finds everything it missed and publishes nothing twice.

mod end;
mod follow;
mod launch;
mod on_event;
mod orphan_cleanup;
mod read;
mod register;
mod run_files;
mod session_check;
mod session_owner;
mod startup;
mod titles;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::paths::Paths;
use agtmux_api::task_files::RunFiles;
use agtmux_core::task::{RunId, TaskInput, TaskSessionName};
use agtmux_tmux::{TaskSessionOwner, TmuxError, TmuxServer, default_socket};
use tokio::sync::Notify;

use crate::actions::{Actions, NamedLocks};
use crate::clock::Clock;
use crate::engine::{EngineHandle, TaskUpdate};
use crate::observe::Discovery;
use crate::store::{Store, TaskArchive, TaskRunRow, TaskSession, TaskSessionKey};
use follow::FollowedSession;
use on_event::EventProgramRunner;

/// Runs and follows tasks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<TasksInner>);

struct TasksInner {
    engine: EngineHandle,
    discovery: Discovery,
    actions: Actions,
    archive: Arc<TaskArchive>,
    clock: Clock,
    dir: PathBuf,
    owner: String,
    /// The path of the `agtmux` executable. Each task pane runs it as the supervisor of the task.
    program: PathBuf,
    followed: Mutex<HashMap<TaskSessionKey, FollowedSession>>,
    /// Runs that the engine does not know yet. They have started or are being started.
    unregistered: Mutex<HashSet<RunId>>,
    /// Wakes the loop in `follow` when there is new work that changes no file.
    wake: Notify,
    /// One lock per session, so that commands change a session one after the other.
    session_locks: NamedLocks,
    on_event: EventProgramRunner,
}

impl Tasks {
    pub(crate) fn start(
        engine: EngineHandle,
        discovery: Discovery,
        actions: Actions,
        store: &Store,
        clock: Clock,
        paths: &Paths,
    ) -> Self {
        let archive = Arc::new(TaskArchive::new(store.path()));
        let background = discovery.background().clone();
        let config = &discovery.config().tasks;
        let on_event = EventProgramRunner::start(config, Arc::clone(&archive), &paths.state_dir, &background);
        let tasks = Self(Arc::new(TasksInner {
            engine,
            discovery,
            actions,
            archive,
            clock,
            dir: paths.tasks_dir(),
            owner: paths.task_owner(),
            program: crate::program::path(),
            followed: Mutex::default(),
            unregistered: Mutex::default(),
            wake: Notify::new(),
            session_locks: NamedLocks::default(),
            on_event,
        }));
        // List the run files before new tasks can start, so that the list contains only runs of an earlier daemon.
        let unregistered = tasks.find_unregistered_runs();
        let (mut unregistered, followed) = (Some(unregistered), tasks.clone());
        background.keep("task_follower", move || {
            let runs = unregistered.take().unwrap_or_else(|| followed.unregistered_runs());
            followed.clone().follow(runs)
        });
        let cleaned = tasks.clone();
        background.keep("task_cleanup", move || cleaned.clone().remove_orphans());
        tasks
    }

    /// Sends inputs to the engine, and then deletes task files that are not needed any more.
    ///
    /// Returns false if the store failed. Then nothing has changed, and the caller must try again.
    async fn apply(&self, key: &TaskSessionKey, inputs: Vec<TaskInput>, launched: Option<TaskRunRow>) -> bool {
        let update = TaskUpdate { key: key.clone(), inputs, launched };
        let Some(outcome) = self.0.engine.apply_task_update(update).await else {
            tracing::warn!(session = %key.session, "cannot store task events; trying again later");
            return false;
        };
        outcome.finished.iter().for_each(|run| self.run_files(run).remove());
        outcome.without_window.iter().for_each(|run| self.run_files(run).remove_log());
        if outcome.has_events {
            self.0.on_event.wake();
        }
        true
    }

    /// The stored state of a session.
    fn session(&self, key: &TaskSessionKey) -> Arc<TaskSession> {
        self.0.engine.task_sessions().get(key)
    }

    fn run_files(&self, run: &RunId) -> RunFiles {
        RunFiles::in_dir(&self.0.dir, run.as_str())
    }

    fn unregistered_runs(&self) -> Vec<RunId> {
        self.0.unregistered.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn is_unregistered(&self, run: &RunId) -> bool {
        self.0.unregistered.lock().unwrap_or_else(PoisonError::into_inner).contains(run)
    }

    fn set_unregistered(&self, run: &RunId, unregistered: bool) {
        let mut runs = self.0.unregistered.lock().unwrap_or_else(PoisonError::into_inner);
        match unregistered {
            true => runs.insert(run.clone()),
            false => runs.remove(run),
        };
    }

    /// Whether a run is finished and all its events are stored.
    pub(crate) fn is_over(&self, run: &str) -> bool {
        let Ok(run) = run.parse::<RunId>() else { return true };
        // Read `unregistered` before asking the engine, because the engine gets a run before the run is removed from
        // `unregistered`.
        let is_unregistered = self.is_unregistered(&run);
        let is_awaited = self.0.engine.task_sessions().awaits_exit(&run);
        !is_unregistered && !is_awaited
    }

    fn session_key(&self, session: &str, socket: Option<&String>) -> Result<TaskSessionKey, ApiError> {
        let bad = |message: String| {
            ApiError::new(ErrorCode::BadRequest, message)
                .with_hint("agtmux task session-name   (prints a valid name); pass it with --session or AGTMUX_SESSION")
        };
        let session: TaskSessionName = session.parse().map_err(|error| bad(format!("{error}")))?;
        let socket = match socket {
            Some(socket) if PathBuf::from(socket).is_absolute() => socket.clone(),
            Some(socket) => return Err(bad(format!("'{socket}' is not an absolute path to a tmux socket"))),
            None => default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()).display().to_string(),
        };
        Ok(TaskSessionKey { socket, session })
    }

    fn tmux(&self, key: &TaskSessionKey) -> TmuxServer {
        let config = self.0.discovery.config();
        TmuxServer::new(&config.tmux.program, &key.socket, config.tmux_bridge.subprocess_timeout.0)
    }

    /// Whether this agtmux instance made the session. The session name alone proves nothing.
    fn is_ours(&self, owner: &TaskSessionOwner) -> bool {
        owner.owner_id == self.0.owner
    }
}

fn tmux_failed(error: TmuxError) -> ApiError {
    let code = match error {
        TmuxError::NotInstalled(_) => ErrorCode::TmuxNotInstalled,
        TmuxError::Timeout(_) => ErrorCode::Timeout,
        _ => ErrorCode::SubprocessFailed,
    };
    ApiError::new(code, error.to_string()).with_hint("agtmux daemon status")
}

fn not_stored() -> ApiError {
    ApiError::new(ErrorCode::NotStored, "cannot store task changes, so the tasks were not changed")
        .with_hint("agtmux daemon status")
}

fn no_session(key: &TaskSessionKey) -> ApiError {
    ApiError::new(ErrorCode::RefNotFound, format!("there is no task session '{}'", key.session))
        .with_hint(format!("agtmux task run --session {} NAME 'COMMAND'   (creates the session)", key.session))
}

fn not_ours(key: &TaskSessionKey) -> ApiError {
    let message =
        format!("the session '{}' was not created by this agtmux instance, so agtmux does not change it", key.session);
    ApiError::new(ErrorCode::Precondition, message).with_hint("choose another name with --session")
}
