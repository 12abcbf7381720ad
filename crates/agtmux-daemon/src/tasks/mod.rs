//! Managed tasks: background commands in windows of tmux sessions that agtmux owns.
//!
//! Each task has two helper processes that need no daemon: a supervisor that records how the program ended, and a
//! reader that logs its output. Both write files into one directory, which the daemon watches. The daemon feeds the
//! contents to the state machine of the session, stores the resulting events and the machine in one transaction, and
//! then publishes the events. A daemon that restarts finds everything it missed and publishes nothing twice.

mod end;
mod follow;
mod launch;
mod on_event;
mod orphan_cleanup;
mod read;
mod run_files;
mod session_check;
mod session_owner;
mod startup;
mod task_registry;
mod titles;

use std::path::PathBuf;
use std::sync::Arc;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::paths::Paths;
use agtmux_core::task::TaskSessionName;
use agtmux_tmux::{TaskSessionOwner, TmuxError, TmuxServer, default_socket};
use tokio::sync::{Mutex, Notify};

use crate::actions::Actions;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::observe::Discovery;
use crate::store::{Store, TaskArchive, TaskMachineRow, TaskRunRow};
use on_event::EventProgramRunner;
use task_registry::TaskRegistry;

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
    /// The `agtmux` executable that supervises tasks in their panes.
    program: PathBuf,
    registry: Mutex<TaskRegistry>,
    /// Wakes the follow loop when work is due that no file change announces.
    wake: Notify,
    /// One lock per session, so that commands change a session one after the other.
    session_locks: crate::actions::NamedLocks,
    on_event: EventProgramRunner,
}

/// Identifies a task session: the tmux server's socket and the session name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TaskSessionKey {
    socket: String,
    session: TaskSessionName,
}

impl Tasks {
    pub(crate) fn start(
        engine: EngineHandle,
        discovery: Discovery,
        actions: Actions,
        store: &Store,
        clock: Clock,
        paths: &Paths,
        remembered: (Vec<TaskRunRow>, Vec<TaskMachineRow>),
    ) -> Self {
        let dir = paths.tasks_dir();
        let program = crate::program::path();
        let archive = Arc::new(TaskArchive::new(store.path()));
        let on_event = EventProgramRunner::start(&discovery.config().tasks, Arc::clone(&archive), &paths.state_dir);
        let registry = Mutex::new(TaskRegistry::of(remembered, &dir));
        let (nudge, turns) = (Notify::new(), crate::actions::NamedLocks::default());
        let owner = paths.task_owner();
        let inner = TasksInner {
            engine,
            discovery,
            actions,
            archive,
            clock,
            dir,
            owner,
            program,
            registry,
            wake: nudge,
            session_locks: turns,
            on_event,
        };
        let tasks = Self(Arc::new(inner));
        // List the run files before new tasks can start: these runs belong to an earlier daemon.
        let begun = tasks.run_specs_in_dir();
        tokio::spawn(tasks.clone().follow(begun));
        tokio::spawn(tasks.clone().remove_orphans());
        tasks
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

fn tmux_failed(error: &TmuxError) -> ApiError {
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
    let message = format!("the session '{}' was not made by this agtmux, so agtmux does not change it", key.session);
    ApiError::new(ErrorCode::Precondition, message).with_hint("choose another name with --session")
}
