//! `task run` and `task restart`: start a task in its own window. A task of the same name is replaced. If that task
//! still runs, it is replaced only if the caller asks for that.

use std::ffi::OsString;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::task_files::RunSpec;
use agtmux_api::wire::{TaskRestartRequest, TaskRunRequest, TaskStarted};
use agtmux_core::ids::WindowId;
use agtmux_core::task::{PlannedRemoval, RunId, TaskName};
use agtmux_tmux::{
    LaunchError, TRUNCATION_MARK, TaskLaunch as TmuxLaunch, TaskPane, TaskSessionOwner, TmuxError, TmuxTaskSession,
};
use uuid::Uuid;

use super::{Tasks, no_session, not_ours, tmux_failed};
use crate::actions::{RequestCaller, TaskActionEntry};
use crate::store::TaskSessionKey;

/// The shell gets the command as one argument. Linux limits one argument to 128 KiB.
const MAX_COMMAND_BYTES: usize = 127 << 10;

/// The task to start and its caller.
struct LaunchRequest<'a> {
    task: &'a TaskName,
    command: &'a str,
    cwd: &'a str,
    /// The process that owns the task session, or an empty text if it is unknown.
    owner_process: &'a str,
    /// Whether to replace a task that still runs.
    replace: bool,
    caller: &'a RequestCaller,
}

impl Tasks {
    pub(crate) async fn run(&self, run: TaskRunRequest, caller: &RequestCaller) -> Result<TaskStarted, ApiError> {
        let (session, task) = (run.session.as_str(), Some(run.task.as_str()));
        let entry = TaskActionEntry { caller, summary: "run a task", session, task, text: Some(&run.command) };
        self.0.actions.audited(entry, self.start_run(&run, caller)).await
    }

    async fn start_run(&self, run: &TaskRunRequest, caller: &RequestCaller) -> Result<TaskStarted, ApiError> {
        let key = self.session_key(&run.session, run.socket.as_ref())?;
        let task = checked_task_name(run)?;
        let _lock = self.lock_session(&key).await;
        let project = run.project.clone().unwrap_or_else(|| run.cwd.clone());
        let owner = TaskSessionOwner { owner_id: self.0.owner.clone(), project, process: self.owner_process(caller) };
        let (command, cwd) = (run.command.as_str(), run.cwd.as_str());
        let owner_process = owner.process.as_str();
        let launch = LaunchRequest { task: &task, command, cwd, owner_process, replace: run.replace, caller };
        // Checks ignore the window of this name until the task has started.
        self.followed(&key, |followed| followed.pending_windows.push(task.to_string()));
        let started = async {
            let (session, slot) = self.ensure_task_pane(&key, &task, &owner).await?;
            self.launch(&key, &session, &slot, &launch).await
        };
        let started = started.await;
        self.followed(&key, |followed| followed.pending_windows.retain(|name| name != task.as_str()));
        started
    }

    /// Starts a task again with its original command and directory.
    pub(crate) async fn restart(
        &self,
        action: TaskRestartRequest,
        caller: &RequestCaller,
    ) -> Result<TaskStarted, ApiError> {
        let entry = TaskActionEntry {
            caller,
            summary: "restart a task",
            session: &action.session,
            task: Some(&action.task),
            text: None,
        };
        self.0.actions.audited(entry, self.restart_task(&action, caller)).await
    }

    async fn restart_task(&self, action: &TaskRestartRequest, caller: &RequestCaller) -> Result<TaskStarted, ApiError> {
        let key = self.session_key(&action.session, action.socket.as_ref())?;
        let _lock = self.lock_session(&key).await;
        let (session, slot) = self.find_own_task(&key, &action.task).await?;
        let task: TaskName = slot.window_name.parse().map_err(|error| bad(format!("{error}")))?;
        let (command, cwd) = self.started_command(&slot).ok_or_else(|| unknown_command(&task))?;
        let owner = self.owner_process(caller);
        let (command, cwd, replace) = (command.as_str(), cwd.as_str(), true);
        let launch = LaunchRequest { task: &task, command, cwd, owner_process: &owner, replace, caller };
        self.launch(&key, &session, &slot, &launch).await
    }

    /// The command and directory that the task in this window was started with. The spec file is preferred to the
    /// options of the tmux window, because the options may be truncated and are not exact.
    fn started_command(&self, slot: &TaskPane) -> Option<(String, String)> {
        let run = slot.run.as_ref().and_then(|run| run.parse::<RunId>().ok());
        let kept = run.and_then(|run| self.run_files(&run).read_kept_spec().ok());
        if let Some(spec) = kept {
            return Some((spec.command, spec.cwd));
        }
        let shown = |text: &Option<String>| text.clone().filter(|text| !text.ends_with(TRUNCATION_MARK));
        shown(&slot.task_command).zip(shown(&slot.task_cwd))
    }

    pub(super) async fn lock_session(&self, key: &TaskSessionKey) -> tokio::sync::OwnedMutexGuard<()> {
        self.0.session_locks.take(format!("{} {}", key.socket, key.session)).await
    }

    /// Finds the window of a task by name or id, in a session that agtmux owns. The caller must not change the window:
    /// if no task has that name, the result may be a window that the user made.
    pub(super) async fn find_task(
        &self,
        key: &TaskSessionKey,
        task: &str,
    ) -> Result<(TmuxTaskSession, TaskPane), ApiError> {
        let session = self.own_session(key).await?;
        let slot = task_pane(&session, task).or_else(|| session.panes.iter().find(|pane| matches_task(pane, task)));
        let slot = slot.ok_or_else(|| no_task(key, task))?.clone();
        Ok((session, slot))
    }

    /// Finds the window of a task that the caller wants to change. Refuses windows that the user made.
    pub(super) async fn find_own_task(
        &self,
        key: &TaskSessionKey,
        task: &str,
    ) -> Result<(TmuxTaskSession, TaskPane), ApiError> {
        let session = self.own_session(key).await?;
        let Some(slot) = task_pane(&session, task).cloned() else {
            let is_there = session.panes.iter().any(|pane| matches_task(pane, task));
            return Err(if is_there { not_a_task(task) } else { no_task(key, task) });
        };
        Ok((session, slot))
    }

    async fn own_session(&self, key: &TaskSessionKey) -> Result<TmuxTaskSession, ApiError> {
        self.own_session_if_any(key).await?.ok_or_else(|| no_session(key))
    }

    /// The session as tmux lists it now, if it exists.
    pub(super) async fn listed_session(&self, key: &TaskSessionKey) -> Result<Option<TmuxTaskSession>, ApiError> {
        self.tmux(key).task_session(key.session.as_str()).await.map_err(tmux_failed)
    }

    /// The session, if it exists. Fails if another program owns it.
    pub(super) async fn own_session_if_any(&self, key: &TaskSessionKey) -> Result<Option<TmuxTaskSession>, ApiError> {
        match self.listed_session(key).await? {
            Some(session) if !self.is_ours(&session.owner) => Err(not_ours(key)),
            session => Ok(session),
        }
    }

    /// Returns the pane to run a task in: the pane in which the task ran before, or the pane of a new window.
    async fn ensure_task_pane(
        &self,
        key: &TaskSessionKey,
        task: &TaskName,
        owner: &TaskSessionOwner,
    ) -> Result<(TmuxTaskSession, TaskPane), ApiError> {
        let (tmux, name) = (self.tmux(key), key.session.as_str());
        let session = match self.own_session_if_any(key).await? {
            Some(session) => session,
            None => match tmux.create_task_session(name, task.as_str(), owner).await {
                Ok(()) => return self.find_own_task(key, task.as_str()).await,
                // The session exists: the server did not answer the query above, or another program has made the
                // session since.
                Err(error) if is_duplicate_session(&error) => self.own_session(key).await?,
                Err(error) => return Err(tmux_failed(error)),
            },
        };
        if let Some(slot) = task_pane(&session, task.as_str()).cloned() {
            return Ok((session, slot));
        }
        let made = tmux.create_task_window(name, task.as_str()).await.map_err(tmux_failed)?;
        let session = self.own_session(key).await?;
        let slot = session.panes.iter().find(|pane| pane.window == made).cloned();
        let slot = slot.ok_or_else(|| no_task(key, task.as_str()))?;
        Ok((session, slot))
    }

    async fn launch(
        &self,
        key: &TaskSessionKey,
        session: &TmuxTaskSession,
        slot: &TaskPane,
        &LaunchRequest { task, command, cwd, owner_process: owner, replace, caller }: &LaunchRequest<'_>,
    ) -> Result<TaskStarted, ApiError> {
        self.refuse_to_replace(caller, session, slot).await?;
        if !replace && self.is_live(slot) {
            return Err(still_live(key, task));
        }
        let run_id = RunId::from(Uuid::now_v7());
        let agent = self.0.actions.agent_behind_caller(caller).await;
        let files = self.run_files(&run_id);
        let spec = RunSpec {
            run_id: run_id.to_string(),
            socket: key.socket.clone(),
            session: key.session.to_string(),
            task: task.to_string(),
            command: command.to_owned(),
            cwd: cwd.to_owned(),
            log_bytes: self.0.discovery.config().tasks.log_kib << 10,
            agent_is_assumed: agent.as_ref().is_some_and(|agent| agent.is_assumed),
            agent: agent.map(|agent| agent.name),
        };
        self.set_unregistered(&run_id, true);
        let written = files.write_spec(&spec).and_then(|()| files.keep_spec(&spec));
        written.inspect_err(|_| self.discard_run(&run_id)).map_err(|error| not_written(&error.to_string()))?;
        let word = |word: &str| [self.0.program.clone().into(), OsString::from(word), files.spec().into()];
        let (program, reader) = (word("task-exec"), word("task-log"));
        let launch = TmuxLaunch {
            server_pid: session.server_pid,
            server_start: session.server_start,
            session: session.session,
            session_name: key.session.as_str(),
            window: slot.window,
            pane: slot.pane,
            run: run_id.as_str(),
            command,
            cwd,
            owner_process: self.next_owner(session, owner),
            program: &program,
            reader: &reader,
        };
        // If the task in this window has ended by itself, record that end. From here on, an end in this window is
        // caused by agtmux.
        let replaced = PlannedRemoval::Replaced(WindowId(slot.window));
        self.record_ending(key, session, replaced).await.inspect_err(|_| self.discard_run(&run_id))?;
        let launched = self.tmux(key).launch_task(&launch).await.map_err(|error| self.launch_failed(&run_id, error))?;
        let row = self.run_row(session, task.to_string(), run_id.clone(), launched);
        if !self.register_run(key, row.clone()).await {
            self.adopt_later(run_id);
        } else if let Some(old) = slot.run.as_ref().and_then(|run| run.parse::<RunId>().ok()) {
            self.run_files(&old).remove_log();
        }
        Ok(TaskStarted {
            session: spec.session,
            window_id: row.window,
            task: spec.task,
            cwd: spec.cwd,
            pane_id: row.pane,
            run_id: spec.run_id,
            socket: spec.socket,
        })
    }

    /// Whether the task in this pane still runs. The state of the pane is not enough: when the exit record is written,
    /// tmux shows the pane as alive for a moment longer.
    fn is_live(&self, slot: &TaskPane) -> bool {
        let run = slot.run.as_ref().and_then(|run| run.parse::<RunId>().ok());
        let has_exited = run.as_ref().is_some_and(|run| self.run_files(run).read_exit().is_some());
        // A window that was just made for the task runs nothing yet.
        !slot.dead && (run.is_some() || slot.task_command.is_some()) && !has_exited
    }

    /// Deletes the files of a run that did not start, and forgets the run.
    fn discard_run(&self, run_id: &RunId) {
        let files = self.run_files(run_id);
        files.remove();
        files.remove_log();
        self.set_unregistered(run_id, false);
    }

    fn launch_failed(&self, run_id: &RunId, error: LaunchError) -> ApiError {
        match error {
            // tmux may still have started the task. Its window will show that.
            LaunchError::Tmux(TmuxError::Timeout(_)) => self.adopt_later(run_id.clone()),
            _ => self.discard_run(run_id),
        }
        match error {
            LaunchError::Tmux(error) => tmux_failed(error),
            LaunchError::Gone => ApiError::new(ErrorCode::RuntimeStale, LaunchError::Gone.to_string())
                .with_hint("run the command again; the task gets a new window"),
        }
    }
}

fn is_duplicate_session(error: &TmuxError) -> bool {
    matches!(error, TmuxError::Failed(message) if message.contains("duplicate session"))
}

fn matches_task(pane: &TaskPane, task: &str) -> bool {
    match task.parse::<WindowId>() {
        Ok(window) => WindowId(pane.window) == window,
        Err(_) => pane.window_name == task,
    }
}

/// The pane of the task with this name or window id. A pane that agtmux marked is preferred, because the user may have
/// made windows with the same name, or may have split the window of the task.
fn task_pane<'a>(session: &'a TmuxTaskSession, task: &str) -> Option<&'a TaskPane> {
    let candidates = || session.panes.iter().filter(|pane| matches_task(pane, task));
    let is_alone = |pane: &TaskPane| session.panes.iter().filter(|other| other.window == pane.window).count() == 1;
    // An unmarked pane was made for a task that did not start, or by a helper that does not mark panes.
    let unmarked = |pane: &&TaskPane| pane.awaits_run || pane.run.is_none() && pane.task_command.is_some();
    candidates().find(|pane| pane.is_task_pane).or_else(|| candidates().find(|pane| unmarked(pane) && is_alone(pane)))
}

fn no_task(key: &TaskSessionKey, task: &str) -> ApiError {
    ApiError::new(ErrorCode::RefNotFound, format!("there is no task '{task}' in session '{}'", key.session))
        .with_hint("agtmux task list")
}

fn still_live(key: &TaskSessionKey, task: &TaskName) -> ApiError {
    let message = format!("task '{task}' still runs in session '{}'", key.session);
    ApiError::new(ErrorCode::Precondition, message).with_hint(format!(
        "agtmux task run --session {} --replace {task} 'COMMAND'   (first ends the running task)",
        key.session
    ))
}

fn not_a_task(task: &str) -> ApiError {
    let message = format!("window '{task}' was not started by agtmux, so agtmux does not change it");
    ApiError::new(ErrorCode::Precondition, message).with_hint("agtmux task run NAME 'COMMAND'   (starts a task)")
}

fn unknown_command(task: &TaskName) -> ApiError {
    let message = format!("cannot restart '{task}': its command is not known");
    ApiError::new(ErrorCode::Precondition, message).with_hint(format!("agtmux task run {task} 'COMMAND'"))
}

fn checked_task_name(run: &TaskRunRequest) -> Result<TaskName, ApiError> {
    let task: TaskName = run.task.parse().map_err(|error| bad(format!("{error}")))?;
    if run.command.trim().is_empty() {
        return Err(bad("the command is empty".into()));
    }
    if run.command.len() > MAX_COMMAND_BYTES || run.command.contains('\0') {
        return Err(bad(format!("the command must have at most {} KiB and no NUL bytes", MAX_COMMAND_BYTES >> 10)));
    }
    let paths = [Some(&run.cwd), run.project.as_ref()];
    if let Some(path) = paths.into_iter().flatten().find(|path| !path.starts_with('/') || path.contains('\0')) {
        return Err(bad(format!("'{}' is not an absolute path", path.escape_debug())));
    }
    Ok(task)
}

fn bad(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux task run --help")
}

fn not_written(error: &str) -> ApiError {
    ApiError::new(ErrorCode::NotStored, format!("the task was not started: cannot write its run file: {error}"))
        .with_hint("agtmux daemon status")
}
