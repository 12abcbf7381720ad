//! Managed tasks: started in windows of sessions that are ours, and followed by what they leave behind.
//!
//! Beside each task there are two small processes of ours that need no daemon: one watches over the program and writes down how
//! it ended, one reads its output and counts. Both write files into one directory, which is watched here. What is found in them
//! goes through the machine of its session, is stored in one transaction with what the machine remembers, and is told then: a
//! daemon that was away finds everything when it comes back, and tells nothing twice.

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

/// Everything that has to do with tasks.
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
    /// The program that is started in panes, if there is one.
    program: PathBuf,
    registry: Mutex<TaskRegistry>,
    /// Something is to be looked at, and not because a file tells.
    wake: Notify,
    /// One session is changed by one at a time.
    session_locks: crate::actions::NamedLocks,
    on_event: EventProgramRunner,
}

/// One session of one server.
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
        let program = std::env::current_exe().unwrap_or_default();
        let archive = Arc::new(TaskArchive::new(store.path()));
        let on_event = EventProgramRunner::start(&discovery.config().tasks, Arc::clone(&archive), &paths.state_dir);
        let book = Mutex::new(TaskRegistry::of(remembered, &dir));
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
            registry: book,
            wake: nudge,
            session_locks: turns,
            on_event,
        };
        let tasks = Self(Arc::new(inner));
        // Before anybody can start one: what is there now was begun by a daemon before this one.
        let begun = tasks.run_specs_in_dir();
        tokio::spawn(tasks.clone().follow(begun));
        tokio::spawn(tasks.clone().remove_orphans());
        tasks
    }

    fn session_key(&self, session: &str, socket: Option<&String>) -> Result<TaskSessionKey, ApiError> {
        let bad = |message: String| {
            ApiError::new(ErrorCode::BadRequest, message)
                .with_hint("agtmux task session-name prints one; --session or AGTMUX_SESSION says which is meant")
        };
        let session: TaskSessionName = session.parse().map_err(|error| bad(format!("{error}")))?;
        let socket = match socket {
            Some(socket) if PathBuf::from(socket).is_absolute() => socket.clone(),
            Some(socket) => return Err(bad(format!("'{socket}' is no absolute path of a tmux socket"))),
            None => default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()).display().to_string(),
        };
        Ok(TaskSessionKey { socket, session })
    }

    fn tmux(&self, place: &TaskSessionKey) -> TmuxServer {
        let config = self.0.discovery.config();
        TmuxServer::new(&config.tmux.program, &place.socket, config.tmux_bridge.subprocess_timeout.0)
    }

    /// Ours is what this agtmux of this user has made: a name is no proof.
    fn is_ours(&self, keeper: &TaskSessionOwner) -> bool {
        keeper.owner_id == self.0.owner
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
    ApiError::new(ErrorCode::NotStored, "what becomes of the tasks cannot be stored, so they were left as they are")
        .with_hint("agtmux daemon status")
}

fn no_session(place: &TaskSessionKey) -> ApiError {
    ApiError::new(ErrorCode::RefNotFound, format!("there is no session '{}'", place.session))
        .with_hint("agtmux task run NAME 'COMMAND' makes it")
}

fn not_ours(place: &TaskSessionKey) -> ApiError {
    let message =
        format!("the session '{}' was not made by this agtmux, so its windows are not touched", place.session);
    ApiError::new(ErrorCode::Precondition, message).with_hint("choose another name with --session")
}
