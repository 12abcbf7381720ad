//! Checks a task session in tmux and converts the result to an input of its state machine.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use agtmux_api::task_files::RunFiles;
use agtmux_core::fleet::PaneTaskStatus;
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{
    CursorPosition, ExitSignal, RunId, TaskExit, TaskInput, TaskPaneSnapshot, TaskSessionSnapshot, TaskSnapshot,
    cursor_line,
};
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::{CursorScreen, TaskPane, TmuxError, TmuxServer, TmuxTaskSession, is_listening};
use jiff::Timestamp;

use super::follow::log_tail;
use super::task_registry::{TrackedRun, TrackedSession};
use super::{TaskSessionKey, Tasks};

/// How many lines of a pane are previewed if its output is not logged.
const PREVIEW_LINES: u32 = 20;

/// How often a dead pane without an exit status is read again, and the pause between reads.
const MAX_TRIES: usize = 5;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// How much two recorded start times of one server may differ, because the clock may have been set.
const MAX_CLOCK_SKEW_SECS: i64 = 60;

impl Tasks {
    /// Checks the session and applies the result. Returns false if tmux did not answer or the store failed.
    pub(super) async fn check_session(&self, key: &TaskSessionKey) -> bool {
        let (tmux, began) = (self.tmux(key), self.0.clock.now());
        let pending: Vec<String> = self.0.registry.lock().await.session(key).pending_windows.clone();
        let Ok(seen) = session_with_exit_statuses(&tmux, key).await else { return false };
        if seen.is_none() && self.is_unreachable(&tmux, key).await {
            return false;
        }
        self.keep_windows(&tmux, seen.as_ref()).await;
        let may_ask = panes_that_may_ask(seen.as_ref(), self.0.registry.lock().await.session(key));
        let cursors = self.cursors(&tmux, &may_ask).await;
        let mut registry = self.0.registry.lock().await;
        let session = registry.session(key);
        let mut look = self.session_snapshot(key, seen, session, &cursors, &pending);
        look.captured_at = began;
        look.tasks.retain(|task| !self.awaits_registration(session, task));
        add_recent_launches(&mut look, session, began);
        self.apply_inputs(&mut registry, key, vec![TaskInput::Snapshot(look)], Vec::new()).await
    }

    /// Whether the session's state is unknown: its server does not answer, or its socket is gone while the server or a
    /// task lives.
    pub(super) async fn is_unreachable(&self, tmux: &TmuxServer, key: &TaskSessionKey) -> bool {
        if is_listening(Path::new(&key.socket)) {
            return tmux.list().await.is_err();
        }
        let processes = self.0.discovery.processes();
        let mut registry = self.0.registry.lock().await;
        let session = registry.session(key);
        let runs = |run: &TrackedRun| is_alive(&*processes, run.row.process) && run.files.read_exit().is_none();
        session.runs.values().any(runs)
            || session.machine.server().is_some_and(|server| is_server_alive(&*processes, server))
    }

    /// Whether the task was launched but could not be registered yet. Its start is reported when it is registered; a
    /// first snapshot that showed it now would count it as older than the daemon.
    fn awaits_registration(&self, session: &TrackedSession, task: &TaskSnapshot) -> bool {
        let Some(run) = &task.run else { return false };
        let is_known = session.runs.contains_key(run)
            || session.machine.has_ended(run)
            || session.machine.has_window(task.window_id);
        !is_known && RunFiles::in_dir(&self.0.dir, run.as_str()).spec().exists()
    }

    /// Sets remain-on-exit on windows that others made in an owned session, so that their exit status can be read.
    async fn keep_windows(&self, tmux: &TmuxServer, seen: Option<&TmuxTaskSession>) {
        let Some(seen) = seen.filter(|seen| self.is_ours(&seen.owner)) else { return };
        let goes = |pane: &&TaskPane| !pane.remain_on_exit && !pane.awaits_run && !pane.dead;
        let mut windows: Vec<u32> = seen.panes.iter().filter(goes).map(|pane| pane.window).collect();
        windows.dedup();
        if !windows.is_empty()
            && let Err(error) = tmux.set_remain_on_exit((seen.server_pid, seen.server_start), &windows).await
        {
            tracing::debug!(%error, "cannot set remain-on-exit on windows next to tasks");
        }
    }

    async fn cursors(&self, tmux: &TmuxServer, panes: &[u32]) -> HashMap<u32, CursorScreen> {
        if panes.is_empty() {
            return HashMap::new();
        }
        let looks = tmux.cursor_screens(panes).await.unwrap_or_default();
        looks.into_iter().map(|look| (look.pane, look)).collect()
    }

    fn session_snapshot(
        &self,
        key: &TaskSessionKey,
        seen: Option<TmuxTaskSession>,
        session: &TrackedSession,
        cursors: &HashMap<u32, CursorScreen>,
        pending: &[String],
    ) -> TaskSessionSnapshot {
        let now = self.0.clock.now();
        let Some(seen) = seen else { return TaskSessionSnapshot::missing(key.session.clone(), None, now) };
        // Ignore windows that were made for a task that has not started.
        let names = || session.pending_windows.iter().chain(pending);
        let waits =
            |pane: &TaskPane| pane.awaits_run || pane.run.is_none() && names().any(|name| *name == pane.window_name);
        let shown = seen.panes.iter().filter(|pane| !waits(pane));
        let mut windows: Vec<u32> = shown.map(|pane| pane.window).collect();
        windows.dedup();
        let tasks = windows.iter().filter_map(|window| {
            let panes: Vec<&TaskPane> = seen.panes.iter().filter(|pane| pane.window == *window).collect();
            let pane = primary_pane(&panes, session)?;
            Some(self.task_snapshot(pane, session, cursors.get(&pane.pane)))
        });
        let tasks = tasks.collect();
        let server = Some(Generation { pid: seen.server_pid, start_time: seen.server_start });
        TaskSessionSnapshot { session_name: key.session.clone(), exists: true, captured_at: now, tasks, server }
    }

    fn task_snapshot(&self, pane: &TaskPane, session: &TrackedSession, cursor: Option<&CursorScreen>) -> TaskSnapshot {
        let run: Option<RunId> = pane.run.as_ref().and_then(|run| run.parse().ok());
        let files = run.as_ref().map(|run| RunFiles::in_dir(&self.0.dir, run.as_str()));
        let known = run.as_ref().and_then(|run| session.runs.get(run));
        // An end that the supervisor recorded is applied from its file, after all output before it.
        let is_told_elsewhere = known.is_some_and(|run| run.files.read_exit().is_some());
        let status = files.as_ref().and_then(RunFiles::read_output);
        let exit = pane_exit(pane);
        let counted = session.machine.bell_count(WindowId(pane.window));
        // tmux counts several bells in one write as one, so its count is used only for windows that agtmux did not
        // start.
        let bells = status.map(|status| status.bells).unwrap_or(if run.is_some() { counted } else { pane.bells });
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        TaskSnapshot {
            window_id: WindowId(pane.window),
            window_name: pane.window_name.clone(),
            pane_id: Some(PaneId(pane.pane)),
            pane_state_known: true,
            current_command: pane.task_command.clone().or(given(&pane.title)).or(given(&pane.current_command)),
            task_cwd: pane.task_cwd.clone(),
            dead: pane.dead && !is_told_elsewhere,
            exit_code: exit.code,
            signal: exit.signal,
            bell: pane.bell,
            bell_count: bells,
            output_preview: files.as_ref().map(log_tail).unwrap_or_default(),
            run,
            cursor_line: cursor.map(cursor_text),
            cursor_row: cursor.map(|cursor| cursor.line),
            answers: status.map_or(0, |status| status.answers),
        }
    }

    /// The current tasks of the session for `task list`. Does not change the state machine.
    pub(super) async fn listed_snapshot(
        &self,
        key: &TaskSessionKey,
        seen: Option<TmuxTaskSession>,
    ) -> TaskSessionSnapshot {
        let tmux = self.tmux(key);
        let mut look = {
            let mut registry = self.0.registry.lock().await;
            self.session_snapshot(key, seen.clone(), registry.session(key), &HashMap::new(), &[])
        };
        let panes = seen.map(|seen| seen.panes).unwrap_or_default();
        for task in &mut look.tasks {
            let Some(pane) = panes.iter().find(|pane| Some(PaneId(pane.pane)) == task.pane_id) else { continue };
            task.dead = pane.dead;
            if task.run.is_none()
                && let Ok(Some(shown)) = tmux.output(pane.pane, PREVIEW_LINES, false).await
            {
                let lines = agtmux_core::output::lines(&shown.screen);
                let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
                let from = end.saturating_sub(PREVIEW_LINES as usize);
                task.output_preview = lines[from..end].join("\n");
            }
        }
        look
    }
}

/// Reads the session until every dead pane has an exit status. tmux shows a pane as dead a moment before it knows the
/// status, and sometimes misses it until another of its child processes ends.
async fn session_with_exit_statuses(
    tmux: &TmuxServer,
    key: &TaskSessionKey,
) -> Result<Option<TmuxTaskSession>, TmuxError> {
    let is_untold = |pane: &TaskPane| pane.dead && pane.dead_status.is_none() && pane.dead_signal.is_none();
    let mut seen = tmux.task_session(key.session.as_str()).await?;
    for nth in 0..MAX_TRIES {
        if !seen.as_ref().is_some_and(|seen| seen.panes.iter().any(is_untold)) {
            break;
        }
        if nth + 1 == MAX_TRIES {
            tmux.reap_children().await?;
        }
        tokio::time::sleep(RETRY_DELAY).await;
        seen = tmux.task_session(key.session.as_str()).await?;
    }
    Ok(seen)
}

pub(super) fn is_alive(processes: &dyn ProcessTable, ProcessRef { pid, start }: ProcessRef) -> bool {
    processes.process(pid).is_some_and(|process| process.start == start && !process.zombie)
}

/// Whether this server generation still runs. tmux reports its start as wall clock seconds.
fn is_server_alive(processes: &dyn ProcessTable, server: Generation) -> bool {
    let is_tmux = |process: &ProcessInfo| process.name.starts_with(b"tmux") && !process.zombie;
    if !processes.process(server.pid).as_ref().is_some_and(is_tmux) {
        return false;
    }
    let began = processes.started_at(server.pid).and_then(|at| Timestamp::try_from(at).ok());
    began.is_none_or(|at| (at.as_second() - server.start_time).abs() <= MAX_CLOCK_SKEW_SECS)
}

/// The panes of tasks that may show a prompt.
fn panes_that_may_ask(seen: Option<&TmuxTaskSession>, session: &TrackedSession) -> Vec<u32> {
    let asks = |pane: &&TaskPane| {
        let run = session.runs.values().find(|run| run.row.pane == PaneId(pane.pane));
        run.is_some_and(|run| run.quiet_at_bytes.is_some() || matches!(run.state, PaneTaskStatus::WaitingInput(_)))
    };
    seen.map(|seen| seen.panes.iter().filter(asks).map(|pane| pane.pane).collect()).unwrap_or_default()
}

/// Adds tasks that were launched during the check, because the check may not show them.
fn add_recent_launches(look: &mut TaskSessionSnapshot, session: &TrackedSession, began: Timestamp) {
    for row in session.recent_launches.iter().filter(|row| row.launched_at >= began) {
        look.tasks.retain(|task| task.window_id != row.window);
        look.exists = true;
        look.server = Some(row.generation);
        look.tasks.push(TaskSnapshot {
            window_id: row.window,
            window_name: row.task.clone(),
            pane_id: Some(row.pane),
            pane_state_known: false,
            current_command: None,
            task_cwd: None,
            dead: false,
            exit_code: None,
            signal: None,
            bell: false,
            bell_count: session.machine.bell_count(row.window),
            output_preview: String::new(),
            run: Some(row.run_id.clone()),
            cursor_line: None,
            cursor_row: None,
            answers: 0,
        });
    }
}

fn cursor_text(look: &CursorScreen) -> String {
    let rows: Vec<&str> = look.rows.iter().map(String::as_str).collect();
    cursor_line(&rows, look.width, CursorPosition { x: look.x, y: look.y })
}

fn pane_exit(pane: &TaskPane) -> TaskExit {
    let signal =
        pane.dead_signal.and_then(|number| u8::try_from(number).ok()).filter(|number| *number > 0).map(ExitSignal);
    TaskExit { code: pane.dead_status.filter(|_| signal.is_none() && pane.dead), signal }
}

/// The pane that the task was launched in, if it still exists, or else the first pane.
fn primary_pane<'a>(panes: &[&'a TaskPane], session: &TrackedSession) -> Option<&'a TaskPane> {
    let window = panes.first()?.window;
    let marked = || panes.iter().find(|pane| pane.is_task_pane).map(|pane| PaneId(pane.pane));
    let launched = session.run_in(WindowId(window)).map(|run| run.row.pane).or_else(marked);
    let looks: Vec<TaskPaneSnapshot> = panes
        .iter()
        .map(|pane| TaskPaneSnapshot { pane_id: PaneId(pane.pane), dead: pane.dead, exit: pane_exit(pane) })
        .collect();
    let chosen = TaskPaneSnapshot::primary(&looks, launched)?.pane_id;
    panes.iter().find(|pane| PaneId(pane.pane) == chosen).copied()
}
