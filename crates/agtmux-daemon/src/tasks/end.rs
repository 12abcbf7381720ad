//! Ending tasks: only of sessions that are ours, and told for what it is.

use std::time::{Duration, Instant};

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EndedTask, TaskCleanupRequest, TaskEndReport, TaskStopRequest};
use agtmux_core::ids::WindowId;
use agtmux_core::task::{ExitSignal, PlannedRemoval, RunId, TaskExit, TaskInput};
use agtmux_tmux::platform::signal_process;
use agtmux_tmux::{TaskPane, TmuxServer, TmuxTaskSession};

use crate::actions::{RequestCaller, TaskActionEntry};

use super::{TaskSessionKey, Tasks, not_ours, not_stored, tmux_failed};
use agtmux_api::task_files::RunFiles;

/// How long a task gets to end by itself when it is asked to.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// One that has nothing left to wait for writes to its terminal for 2 s at the most.
const EXIT_TIMEOUT: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// What has ended is shown dead by then.
const DEAD_PANE_TIMEOUT: Duration = Duration::from_secs(2);

impl Tasks {
    /// Asks a task to end, and makes it if it does not. Its window stays, unless that is to go as well.
    pub(crate) async fn stop(&self, action: TaskStopRequest, asker: &RequestCaller) -> Result<TaskEndReport, ApiError> {
        let noted = TaskActionEntry {
            caller: asker,
            summary: "stop a task",
            session: &action.session,
            task: Some(&action.task),
            text: None,
        };
        self.0.actions.audited_unless_agent(noted, self.stop_one(&action)).await
    }

    async fn stop_one(&self, action: &TaskStopRequest) -> Result<TaskEndReport, ApiError> {
        let place = self.session_key(&action.session, action.socket.as_ref())?;
        let _turn = self.lock_session(&place).await;
        let tmux = self.tmux(&place);
        let (session, slot) = self.find_own_task(&tmux, &place, &action.task).await?;
        let window = WindowId(slot.window);
        if action.window {
            self.record_ending(&place, &session, PlannedRemoval::Stopped { window, by_user: true }).await?;
            let server = (session.server_pid, session.server_start);
            tmux.kill_windows(server, &[slot.window]).await.map_err(|error| tmux_failed(&error))?;
            self.check_soon(&place).await;
            return Ok(ended(&place, vec![ended_task(&slot)]));
        }
        if slot.dead {
            return Ok(ended(&place, vec![self.end_of_task(&slot).await]));
        }
        self.signal_processes(&slot).await;
        self.wait_until_dead(&tmux, &place, slot).await
    }

    /// The one who watches over it ends a moment after it. How it ended is said, or that it has not.
    async fn wait_until_dead(
        &self,
        tmux: &TmuxServer,
        place: &TaskSessionKey,
        slot: TaskPane,
    ) -> Result<TaskEndReport, ApiError> {
        let until = Instant::now() + EXIT_TIMEOUT;
        loop {
            let seen = tmux.task_session(place.session.as_str()).await.map_err(|error| tmux_failed(&error))?;
            let pane = seen.and_then(|seen| seen.panes.into_iter().find(|pane| pane.pane == slot.pane));
            match pane {
                // Its window went with it.
                None => return Ok(ended(place, vec![ended_task(&slot)])),
                Some(pane) if has_exit_status(&pane) || pane.pane_pid != slot.pane_pid => {
                    return Ok(ended(place, vec![ended_task(&pane)]));
                }
                Some(pane) if Instant::now() >= until => {
                    return if pane.dead { Ok(ended(place, vec![ended_task(&pane)])) } else { Err(still_runs(&slot)) };
                }
                // A pane is dead when its terminal is closed; how its process ended tmux hears a moment later, or never.
                Some(pane) if pane.dead => {
                    if let Some(end) = self.recorded_end(&pane).await {
                        return Ok(ended(place, vec![end]));
                    }
                }
                Some(_) => {}
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn recorded_end(&self, pane: &TaskPane) -> Option<EndedTask> {
        let TaskExit { code, signal } = self.recorded_exit(pane.run.as_ref()?).await?;
        Some(EndedTask { exit_code: code, signal: signal.map(|signal| signal.to_string()), ..ended_task(pane) })
    }

    /// As tmux knows it, else as it was told.
    async fn end_of_task(&self, pane: &TaskPane) -> EndedTask {
        let told = if pane.dead && !has_exit_status(pane) { self.recorded_end(pane).await } else { None };
        told.unwrap_or_else(|| ended_task(pane))
    }

    /// Takes windows away in which nothing runs any more.
    pub(crate) async fn prune_dead(
        &self,
        action: TaskCleanupRequest,
        asker: &RequestCaller,
    ) -> Result<TaskEndReport, ApiError> {
        let noted = TaskActionEntry {
            caller: asker,
            summary: "prune dead tasks",
            session: &action.session,
            task: None,
            text: None,
        };
        self.0.actions.audited(noted, self.prune(&action)).await
    }

    async fn prune(&self, action: &TaskCleanupRequest) -> Result<TaskEndReport, ApiError> {
        let place = self.session_key(&action.session, action.socket.as_ref())?;
        let _turn = self.lock_session(&place).await;
        let tmux = self.tmux(&place);
        let session = match self.owned_session(&place).await? {
            Some(session) => self.wait_for_dead_panes(&place, session).await?,
            None => None,
        };
        let Some(session) = session else { return Ok(missing_session(&place)) };
        let dead = dead_windows(&session);
        let windows: Vec<WindowId> = dead.iter().map(|pane| WindowId(pane.window)).collect();
        self.record_ending(&place, &session, PlannedRemoval::PruneDead(windows)).await?;
        let mut pruned = Vec::new();
        for pane in &dead {
            pruned.push(self.end_of_task(pane).await);
        }
        let numbers: Vec<u32> = dead.iter().map(|pane| pane.window).collect();
        let server = (session.server_pid, session.server_start);
        tmux.kill_windows(server, &numbers).await.map_err(|error| tmux_failed(&error))?;
        self.remove_logs(dead.iter().copied());
        self.check_soon(&place).await;
        Ok(ended(&place, pruned))
    }

    /// Ends everything in the session, and the session.
    pub(crate) async fn kill_all(
        &self,
        action: TaskCleanupRequest,
        asker: &RequestCaller,
    ) -> Result<TaskEndReport, ApiError> {
        let noted = TaskActionEntry {
            caller: asker,
            summary: "end all tasks",
            session: &action.session,
            task: None,
            text: None,
        };
        self.0.actions.audited_unless_agent(noted, self.end_all(&action)).await
    }

    async fn end_all(&self, action: &TaskCleanupRequest) -> Result<TaskEndReport, ApiError> {
        let place = self.session_key(&action.session, action.socket.as_ref())?;
        let _turn = self.lock_session(&place).await;
        let Some(session) = self.owned_session(&place).await? else { return Ok(missing_session(&place)) };
        self.record_ending(&place, &session, PlannedRemoval::KillAll).await?;
        let server = (session.server_pid, session.server_start);
        let killed = self.tmux(&place).kill_session(server, session.session).await;
        killed.map_err(|error| tmux_failed(&error))?;
        self.remove_logs(session.panes.iter());
        self.check_soon(&place).await;
        let mut panes: Vec<&TaskPane> = session.panes.iter().collect();
        panes.dedup_by_key(|pane| pane.window);
        Ok(ended(&place, panes.into_iter().map(ended_task).collect()))
    }

    /// The session, if it is there and ours.
    async fn owned_session(&self, place: &TaskSessionKey) -> Result<Option<TmuxTaskSession>, ApiError> {
        let session = self.tmux(place).task_session(place.session.as_str()).await;
        match session.map_err(|error| tmux_failed(&error))? {
            Some(session) if !self.is_ours(&session.owner) => Err(not_ours(place)),
            session => Ok(session),
        }
    }

    /// The session when tmux shows that dead of which it was told that it has ended: the one who watched over it ends a moment later.
    pub(super) async fn wait_for_dead_panes(
        &self,
        place: &TaskSessionKey,
        session: TmuxTaskSession,
    ) -> Result<Option<TmuxTaskSession>, ApiError> {
        let until = Instant::now() + DEAD_PANE_TIMEOUT;
        let mut seen = session;
        while self.awaits_dead_pane(place, &seen).await && Instant::now() < until {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.owned_session(place).await? {
                Some(session) => seen = session,
                None => return Ok(None),
            }
        }
        Ok(Some(seen))
    }

    async fn awaits_dead_pane(&self, place: &TaskSessionKey, session: &TmuxTaskSession) -> bool {
        let mut book = self.0.registry.lock().await;
        let machine = &book.session(place).machine;
        let has_ended = |run: &String| run.parse().is_ok_and(|run| machine.has_just_ended(&run));
        session.panes.iter().any(|pane| pane.is_task_pane && !pane.dead && pane.run.as_ref().is_some_and(has_ended))
    }

    /// What ended by itself is told first, and then that the rest is ended by us. If that cannot be written down nothing is ended.
    pub(super) async fn record_ending(
        &self,
        place: &TaskSessionKey,
        seen: &TmuxTaskSession,
        ending: PlannedRemoval,
    ) -> Result<(), ApiError> {
        let concerned = affected_windows(&ending);
        let concerns = |window: WindowId| concerned.as_ref().is_none_or(|windows| windows.contains(&window));
        self.wait_for_readers(place, concerns).await;
        if self.has_unrecorded_end(place, seen, concerns).await {
            // Who watched over it was killed, and has written nothing down: tmux alone can tell, as long as the window is there.
            self.check_session(place).await;
        }
        let mut book = self.0.registry.lock().await;
        let stored = self.read_run_files(&mut book, place, concerns).await
            && self.apply_inputs(&mut book, place, vec![TaskInput::RemovalPlanned(ending)], Vec::new()).await;
        if stored { Ok(()) } else { Err(not_stored()) }
    }

    /// Whether a pane is dead of which nobody has told how it ended.
    async fn has_unrecorded_end(
        &self,
        place: &TaskSessionKey,
        seen: &TmuxTaskSession,
        concerns: impl Fn(WindowId) -> bool,
    ) -> bool {
        let dead = seen.panes.iter().filter(|pane| pane.dead && concerns(WindowId(pane.window)));
        let dead: Vec<WindowId> = dead.map(|pane| WindowId(pane.window)).collect();
        if dead.is_empty() {
            return false;
        }
        let mut book = self.0.registry.lock().await;
        let session = book.session(place);
        let is_written = |window: WindowId| session.run_in(window).is_some_and(|run| run.files.read_exit().is_some());
        dead.iter().any(|window| !session.machine.exit_is_known(*window) && !is_written(*window))
    }

    pub(super) async fn check_soon(&self, place: &TaskSessionKey) {
        self.0.registry.lock().await.session(place).check_by(Instant::now());
        self.0.wake.notify_one();
    }

    pub(super) fn remove_logs<'a>(&self, panes: impl Iterator<Item = &'a TaskPane>) {
        for run in panes.filter_map(|pane| pane.run.as_ref()?.parse::<RunId>().ok()) {
            RunFiles::in_dir(&self.0.dir, run.as_str()).remove_log();
        }
    }

    /// TERM to everything below the one who watches over it, and after a while KILL. That one stays to write down how it ended.
    async fn signal_processes(&self, slot: &TaskPane) {
        for (kill, patience) in [(false, TERM_TIMEOUT), (true, KILL_TIMEOUT)] {
            let until = Instant::now() + patience;
            let mut struck = false;
            loop {
                let below = self.child_processes(slot.pane_pid);
                if below.is_empty() {
                    return;
                }
                if !std::mem::replace(&mut struck, true) || kill {
                    let processes = self.0.discovery.processes();
                    for (pid, start) in below {
                        let _ = signal_process(&*processes, pid, start, kill);
                    }
                }
                if Instant::now() >= until {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    fn child_processes(&self, pane_pid: u32) -> Vec<(u32, u64)> {
        let tree = self.0.discovery.processes().trees(&[pane_pid]).pop().flatten();
        let below = tree.into_iter().flat_map(|tree| tree.processes).filter(|p| p.pid != pane_pid && !p.zombie);
        below.map(|process| (process.pid, process.start)).collect()
    }
}

/// The windows that are taken away; none where it is all of them.
fn affected_windows(ending: &PlannedRemoval) -> Option<Vec<WindowId>> {
    match ending {
        PlannedRemoval::PruneDead(windows) => Some(windows.clone()),
        PlannedRemoval::KillAll => None,
        PlannedRemoval::Replaced(window) | PlannedRemoval::Stopped { window, .. } => Some(vec![*window]),
    }
}

/// Those of which no pane lives, each by its first one.
fn dead_windows(session: &TmuxTaskSession) -> Vec<&TaskPane> {
    let lives = |window: u32| session.panes.iter().any(|pane| pane.window == window && !pane.dead);
    let mut dead: Vec<&TaskPane> = session.panes.iter().filter(|pane| !lives(pane.window)).collect();
    dead.dedup_by_key(|pane| pane.window);
    dead
}

fn has_exit_status(pane: &TaskPane) -> bool {
    let exit = ended_task(pane);
    pane.dead && (exit.exit_code.is_some() || exit.signal.is_some())
}

fn ended_task(pane: &TaskPane) -> EndedTask {
    let signal =
        pane.dead_signal.and_then(|number| u8::try_from(number).ok()).filter(|number| *number > 0).map(ExitSignal);
    let exit = TaskExit { code: pane.dead_status.filter(|_| pane.dead && signal.is_none()), signal };
    EndedTask {
        task: pane.window_name.clone(),
        window_id: WindowId(pane.window),
        exit_code: exit.code,
        signal: exit.signal.map(|signal| signal.to_string()),
    }
}

fn still_runs(slot: &TaskPane) -> ApiError {
    let message = format!("'{}' still runs, though it was sent SIGTERM and then SIGKILL", slot.window_name);
    ApiError::new(ErrorCode::Precondition, message)
        .with_hint(format!("agtmux task stop {} --window takes its window away", slot.window_name))
}

fn ended(place: &TaskSessionKey, tasks: Vec<EndedTask>) -> TaskEndReport {
    TaskEndReport { session: place.session.to_string(), exists: true, tasks }
}

fn missing_session(place: &TaskSessionKey) -> TaskEndReport {
    TaskEndReport { session: place.session.to_string(), exists: false, tasks: Vec::new() }
}
