//! `task stop`, `task prune-dead` and `task kill-all`. They act only on sessions that agtmux owns.

use std::io;
use std::time::{Duration, Instant};

use agtmux_api::config::AgentAction;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EndedTask, TaskCleanupRequest, TaskEndReport, TaskStopRequest};
use agtmux_core::ids::WindowId;
use agtmux_core::task::{PlannedRemoval, RunId, TaskExit, TaskInput};
use agtmux_tmux::platform::signal_process;
use agtmux_tmux::{TaskPane, TmuxTaskSession};

use super::session_check::pane_exit;
use super::{Tasks, not_stored, tmux_failed};
use crate::actions::{RequestCaller, TaskActionEntry};
use crate::store::TaskSessionKey;

/// How long the processes of a task may take to end after SIGTERM. After that, they get SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the pane may take to die after the task ended. The supervisor in the pane ends later: it waits up to
/// 2 s until all output of the task is logged.
const EXIT_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long tmux may take to show the pane of an ended task as dead.
const DEAD_PANE_TIMEOUT: Duration = Duration::from_secs(2);

impl Tasks {
    /// Ends a task. Closes its window if the caller asks for that. Otherwise sends SIGTERM, then SIGKILL, and keeps the
    /// window.
    pub(crate) async fn stop(
        &self,
        action: TaskStopRequest,
        caller: &RequestCaller,
    ) -> Result<TaskEndReport, ApiError> {
        let entry = TaskActionEntry {
            caller,
            summary: "stop a task",
            session: &action.session,
            task: Some(&action.task),
            text: None,
        };
        self.0.actions.audited(entry, self.stop_one(&action, caller)).await
    }

    async fn stop_one(&self, action: &TaskStopRequest, caller: &RequestCaller) -> Result<TaskEndReport, ApiError> {
        let refusal =
            self.0.actions.refuse_agents_unless_listed(caller, AgentAction::StopTask, "stop a task").await.err();
        let key = self.session_key(&action.session, action.socket.as_ref())?;
        let _lock = self.lock_session(&key).await;
        let found = self.find_own_task(&key, &action.task).await;
        // Without its window, only the processes of the task end.
        let ends = |pane: &TaskPane, slot: &TaskPane| match action.window {
            true => pane.window == slot.window,
            false => pane.pane == slot.pane,
        };
        let (session, slot) = unless_refused(found, refusal, |(session, slot)| {
            self.may_end_as_owner(caller, session, session.panes.iter().filter(|pane| ends(pane, slot)))
        })?;
        let window = WindowId(slot.window);
        if action.window {
            let by_user = action.by_user || !self.is_agent(caller).await;
            self.record_ending(&key, &session, PlannedRemoval::Stopped { window, by_user }).await?;
            self.close_windows(&key, &session, &[slot.window]).await?;
            return Ok(ended(&key, vec![ended_task(&slot)]));
        }
        if slot.dead {
            return Ok(ended(&key, vec![self.end_of_task(&slot).await]));
        }
        self.signal_processes(&slot).await;
        Ok(ended(&key, vec![self.wait_until_dead(&key, &slot).await?]))
    }

    /// Whether the caller is certainly an agent, and not a person.
    async fn is_agent(&self, caller: &RequestCaller) -> bool {
        self.0.actions.agent_behind_caller(caller).await.is_some_and(|agent| !agent.is_assumed)
    }

    /// Waits until the pane is dead, because the supervisor in the pane ends a moment after the task. Returns how the
    /// task ended. Fails if the pane is still alive after `EXIT_TIMEOUT`.
    async fn wait_until_dead(&self, key: &TaskSessionKey, slot: &TaskPane) -> Result<EndedTask, ApiError> {
        let until = Instant::now() + EXIT_TIMEOUT;
        loop {
            let session = self.listed_session(key).await?;
            let pane = session.and_then(|session| session.panes.into_iter().find(|pane| pane.pane == slot.pane));
            // If the pane is gone, its window closed together with the task.
            let Some(pane) = pane else { return Ok(ended_task(slot)) };
            if has_exit_status(&pane) || pane.pane_pid != slot.pane_pid {
                return Ok(ended_task(&pane));
            }
            if Instant::now() >= until {
                return if pane.dead { Ok(ended_task(&pane)) } else { Err(still_runs(slot)) };
            }
            // tmux marks a pane dead when its terminal closes. tmux learns the exit status a moment later, or never.
            if pane.dead
                && let Some(end) = self.recorded_end(&pane).await
            {
                return Ok(end);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn recorded_end(&self, pane: &TaskPane) -> Option<EndedTask> {
        Some(end_report(pane, self.recorded_exit(pane.run.as_ref()?).await?))
    }

    /// Returns the exit status that tmux reports for the pane. If tmux reports none, returns the one in the stored exit
    /// event.
    async fn end_of_task(&self, pane: &TaskPane) -> EndedTask {
        let recorded = if pane.dead && !has_exit_status(pane) { self.recorded_end(pane).await } else { None };
        recorded.unwrap_or_else(|| ended_task(pane))
    }

    /// Closes the windows whose tasks have ended.
    pub(crate) async fn prune_dead(
        &self,
        action: TaskCleanupRequest,
        caller: &RequestCaller,
    ) -> Result<TaskEndReport, ApiError> {
        let entry =
            TaskActionEntry { caller, summary: "prune dead tasks", session: &action.session, task: None, text: None };
        self.0.actions.audited(entry, self.prune(&action)).await
    }

    async fn prune(&self, action: &TaskCleanupRequest) -> Result<TaskEndReport, ApiError> {
        let key = self.session_key(&action.session, action.socket.as_ref())?;
        let _lock = self.lock_session(&key).await;
        let session = match self.own_session_if_any(&key).await? {
            Some(session) => self.wait_for_dead_panes(&key, session).await?,
            None => None,
        };
        let Some(session) = session else { return Ok(missing_session(&key)) };
        let dead = dead_windows(&session);
        let windows: Vec<WindowId> = dead.iter().map(|pane| WindowId(pane.window)).collect();
        self.record_ending(&key, &session, PlannedRemoval::PruneDead(windows)).await?;
        let mut pruned = Vec::new();
        for pane in &dead {
            pruned.push(self.end_of_task(pane).await);
        }
        let numbers: Vec<u32> = dead.iter().map(|pane| pane.window).collect();
        self.close_windows(&key, &session, &numbers).await?;
        self.remove_logs(dead.iter().copied());
        Ok(ended(&key, pruned))
    }

    async fn close_windows(
        &self,
        key: &TaskSessionKey,
        session: &TmuxTaskSession,
        windows: &[u32],
    ) -> Result<(), ApiError> {
        let server = (session.server_pid, session.server_start);
        self.tmux(key).kill_windows(server, windows).await.map_err(tmux_failed)?;
        self.check_soon(key);
        Ok(())
    }

    /// Ends all tasks of the session and closes the session.
    pub(crate) async fn kill_all(
        &self,
        action: TaskCleanupRequest,
        caller: &RequestCaller,
    ) -> Result<TaskEndReport, ApiError> {
        let entry =
            TaskActionEntry { caller, summary: "end all tasks", session: &action.session, task: None, text: None };
        self.0.actions.audited(entry, self.end_all(&action, caller)).await
    }

    async fn end_all(&self, action: &TaskCleanupRequest, caller: &RequestCaller) -> Result<TaskEndReport, ApiError> {
        let refusal = self.0.actions.refuse_agents_unless_allowed(caller, "end all tasks").await.err();
        let key = self.session_key(&action.session, action.socket.as_ref())?;
        let _lock = self.lock_session(&key).await;
        let found = self.own_session_if_any(&key).await;
        let is_allowed = |session: &TmuxTaskSession| self.may_end_as_owner(caller, session, &session.panes);
        let found = unless_refused(found, refusal, |session| session.as_ref().is_some_and(is_allowed))?;
        let Some(session) = found else { return Ok(missing_session(&key)) };
        self.kill_session(&key, &session).await?;
        let mut panes: Vec<&TaskPane> = session.panes.iter().collect();
        panes.dedup_by_key(|pane| pane.window);
        Ok(ended(&key, panes.into_iter().map(ended_task).collect()))
    }

    pub(super) async fn kill_session(&self, key: &TaskSessionKey, session: &TmuxTaskSession) -> Result<(), ApiError> {
        self.record_ending(key, session, PlannedRemoval::KillAll).await?;
        let server = (session.server_pid, session.server_start);
        self.tmux(key).kill_session(server, session.session).await.map_err(tmux_failed)?;
        self.remove_logs(session.panes.iter());
        self.check_soon(key);
        Ok(())
    }

    /// Waits until tmux shows the panes of all ended tasks as dead. A pane lives a moment longer than its task, because
    /// the supervisor in the pane ends after the task.
    pub(super) async fn wait_for_dead_panes(
        &self,
        key: &TaskSessionKey,
        mut session: TmuxTaskSession,
    ) -> Result<Option<TmuxTaskSession>, ApiError> {
        let until = Instant::now() + DEAD_PANE_TIMEOUT;
        while self.awaits_dead_pane(key, &session) && Instant::now() < until {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.own_session_if_any(key).await? {
                Some(listed) => session = listed,
                None => return Ok(None),
            }
        }
        Ok(Some(session))
    }

    fn awaits_dead_pane(&self, key: &TaskSessionKey, session: &TmuxTaskSession) -> bool {
        let machine = &self.session(key).machine;
        let has_ended = |run: &String| run.parse().is_ok_and(|run| machine.has_just_ended(&run));
        session.panes.iter().any(|pane| pane.is_task_pane && !pane.dead && pane.run.as_ref().is_some_and(has_ended))
    }

    /// Records that agtmux is about to end tasks. Exits that happened earlier are recorded first. If this function
    /// fails, the caller must not end any task.
    pub(super) async fn record_ending(
        &self,
        key: &TaskSessionKey,
        session: &TmuxTaskSession,
        ending: PlannedRemoval,
    ) -> Result<(), ApiError> {
        let removal = Some(TaskInput::RemovalPlanned(ending.clone()));
        let affects = |window: WindowId| match &ending {
            PlannedRemoval::PruneDead(windows) => windows.contains(&window),
            PlannedRemoval::KillAll => true,
            PlannedRemoval::Replaced(affected) | PlannedRemoval::Stopped { window: affected, .. } => {
                *affected == window
            }
        };
        self.wait_for_readers(key, affects).await;
        if self.has_unrecorded_end(key, session, affects) {
            // The supervisor was killed and recorded nothing. Only tmux knows the exit status, and only while the
            // window exists.
            self.check_session(key).await;
        }
        if self.apply_run_files(key, affects, removal).await { Ok(()) } else { Err(not_stored()) }
    }

    /// Whether a window contains a dead pane, but the exit of its task is not recorded.
    fn has_unrecorded_end(
        &self,
        key: &TaskSessionKey,
        session: &TmuxTaskSession,
        affects: impl Fn(WindowId) -> bool,
    ) -> bool {
        let known = self.session(key);
        let is_recorded = |window: WindowId| {
            known.machine.exit_is_known(window)
                || known.runs_in(window).any(|run| self.run_files(&run.run_id).read_exit().is_some())
        };
        let mut dead = session.panes.iter().filter(|pane| pane.dead).map(|pane| WindowId(pane.window));
        dead.any(|window| affects(window) && !is_recorded(window))
    }

    fn remove_logs<'a>(&self, panes: impl Iterator<Item = &'a TaskPane>) {
        for run in panes.filter_map(|pane| pane.run.as_ref()?.parse::<RunId>().ok()) {
            self.run_files(&run).remove_log();
        }
    }

    /// Sends TERM, and KILL after a timeout, to all processes of the task. The supervisor gets no signal, because it
    /// must record the exit.
    async fn signal_processes(&self, slot: &TaskPane) {
        for (kill, timeout) in [(false, TERM_TIMEOUT), (true, KILL_TIMEOUT)] {
            let until = Instant::now() + timeout;
            let mut signalled = false;
            loop {
                // A process table that cannot be read does not mean that the children are gone.
                if let Ok(children) = self.child_processes(slot.pane_pid) {
                    if children.is_empty() {
                        return;
                    }
                    if !std::mem::replace(&mut signalled, true) || kill {
                        let processes = self.0.discovery.processes();
                        for (pid, start) in children {
                            let _ = signal_process(&*processes, pid, start, kill);
                        }
                    }
                }
                if Instant::now() >= until {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    fn child_processes(&self, pane_pid: u32) -> io::Result<Vec<(u32, u64)>> {
        let tree = self.0.discovery.processes().trees(&[pane_pid])?.pop().flatten();
        let children = tree.into_iter().flat_map(|tree| tree.processes).filter(|p| p.pid != pane_pid && !p.zombie);
        Ok(children.map(|process| (process.pid, process.start)).collect())
    }
}

/// For each window in which all panes are dead: the first pane.
fn dead_windows(session: &TmuxTaskSession) -> Vec<&TaskPane> {
    let lives = |window: u32| session.panes.iter().any(|pane| pane.window == window && !pane.dead);
    let mut dead: Vec<&TaskPane> = session.panes.iter().filter(|pane| !lives(pane.window)).collect();
    dead.dedup_by_key(|pane| pane.window);
    dead
}

fn has_exit_status(pane: &TaskPane) -> bool {
    pane.dead && pane_exit(pane) != TaskExit::UNKNOWN
}

fn ended_task(pane: &TaskPane) -> EndedTask {
    end_report(pane, pane_exit(pane))
}

fn end_report(pane: &TaskPane, exit: TaskExit) -> EndedTask {
    EndedTask {
        task: pane.window_name.clone(),
        window_id: WindowId(pane.window),
        exit_code: exit.code,
        signal: exit.signal.map(|signal| signal.to_string()),
    }
}

fn still_runs(slot: &TaskPane) -> ApiError {
    let message = format!("task '{}' still runs after SIGTERM and SIGKILL", slot.window_name);
    ApiError::new(ErrorCode::Precondition, message)
        .with_hint(format!("agtmux task stop {} --window   (closes its window)", slot.window_name))
}

/// The result, or the refusal if there is one and the caller is not allowed to act on the result.
fn unless_refused<T>(
    found: Result<T, ApiError>,
    refusal: Option<ApiError>,
    is_allowed: impl FnOnce(&T) -> bool,
) -> Result<T, ApiError> {
    match (found, refusal) {
        (found, None) => found,
        (Ok(found), Some(_)) if is_allowed(&found) => Ok(found),
        (_, Some(refusal)) => Err(refusal),
    }
}

fn ended(key: &TaskSessionKey, tasks: Vec<EndedTask>) -> TaskEndReport {
    TaskEndReport { session: key.session.to_string(), exists: true, tasks }
}

fn missing_session(key: &TaskSessionKey) -> TaskEndReport {
    TaskEndReport { session: key.session.to_string(), exists: false, tasks: Vec::new() }
}
