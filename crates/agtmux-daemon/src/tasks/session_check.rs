//! Checks a task session in tmux and converts the result to an input of its state machine.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use agtmux_api::task_files::RunFiles;
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{
    CursorPosition, ExitSignal, RunId, TaskExit, TaskInput, TaskSessionSnapshot, TaskSnapshot, cursor_line,
};
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use agtmux_tmux::{CursorScreen, TaskPane, TmuxError, TmuxServer, TmuxTaskSession, is_listening};
use jiff::Timestamp;

use super::Tasks;
use super::run_files::log_tail;
use crate::store::{TaskRunRow, TaskSession, TaskSessionKey};

/// How many lines of a pane `task list` previews if the output of the pane is not logged.
const PREVIEW_LINES: u32 = 20;

/// If a dead pane has no exit status yet, tmux is asked this many times, with a pause of `RETRY_DELAY` in between.
const MAX_TRIES: usize = 5;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Two start times of the same server may differ by this much, because the clock may have been set in between.
const MAX_CLOCK_SKEW_SECS: i64 = 60;

impl Tasks {
    /// Checks the session and applies the result. Returns false if tmux did not answer or the store failed.
    pub(super) async fn check_session(&self, key: &TaskSessionKey) -> bool {
        let (tmux, began) = (self.tmux(key), self.0.clock.now());
        let pending_windows = self.pending_windows(key);
        let Ok(listed) = session_with_exit_statuses(&tmux, key).await else { return false };
        if listed.is_none() && self.is_unreachable(key).await {
            return false;
        }
        self.keep_windows(&tmux, listed.as_ref()).await;
        let cursors = self.cursors(key, listed.as_ref()).await;
        let snapshot = self.session_snapshot(key, listed.as_ref(), &cursors, &pending_windows);
        let snapshot = TaskSessionSnapshot { captured_at: began, ..snapshot };
        self.apply_run_files(key, |_| false, Some(TaskInput::Snapshot(snapshot))).await
    }

    /// Whether the session's state cannot be read. Either its tmux server does not answer, or the socket is gone
    /// although the server or a task of the session still runs.
    pub(super) async fn is_unreachable(&self, key: &TaskSessionKey) -> bool {
        if is_listening(Path::new(&key.socket)) {
            return self.tmux(key).list().await.is_err();
        }
        let (processes, session) = (self.0.discovery.processes(), self.session(key));
        let lives =
            |run: &TaskRunRow| is_alive(&*processes, run.process) && self.run_files(&run.run_id).read_exit().is_none();
        session.runs.values().any(lives)
            || session.machine.server().is_some_and(|server| is_server_alive(&*processes, server))
    }

    fn pending_windows(&self, key: &TaskSessionKey) -> Vec<String> {
        self.followed(key, |followed| followed.pending_windows.clone())
    }

    /// In a session that agtmux owns, sets remain-on-exit on windows that agtmux did not make. tmux then keeps the exit
    /// status of the programs in these windows.
    async fn keep_windows(&self, tmux: &TmuxServer, session: Option<&TmuxTaskSession>) {
        let Some(session) = session.filter(|session| self.is_ours(&session.owner)) else { return };
        let closes = |pane: &&TaskPane| !pane.remain_on_exit && !pane.awaits_run && !pane.dead;
        let mut windows: Vec<u32> = session.panes.iter().filter(closes).map(|pane| pane.window).collect();
        windows.dedup();
        if !windows.is_empty()
            && let Err(error) = tmux.set_remain_on_exit((session.server_pid, session.server_start), &windows).await
        {
            tracing::debug!(%error, "cannot set remain-on-exit on windows next to tasks");
        }
    }

    /// The cursor and the screen rows of each task pane that may show a prompt.
    async fn cursors(&self, key: &TaskSessionKey, listed: Option<&TmuxTaskSession>) -> HashMap<u32, CursorScreen> {
        let panes = self.panes_that_may_ask(key, listed);
        if panes.is_empty() {
            return HashMap::new();
        }
        let screens = self.tmux(key).cursor_screens(&panes).await.unwrap_or_default();
        screens.into_iter().map(|screen| (screen.pane, screen)).collect()
    }

    /// The panes of tasks that may show a prompt.
    fn panes_that_may_ask(&self, key: &TaskSessionKey, listed: Option<&TmuxTaskSession>) -> Vec<u32> {
        let session = self.session(key);
        let may_ask: Vec<PaneId> = self.followed(key, |followed| {
            let is_quiet = |run: &RunId| followed.runs.get(run).is_some_and(|run| run.quiet_at_bytes.is_some());
            let asks = |run: &&TaskRunRow| is_quiet(&run.run_id) || session.waits_for_input(run);
            session.runs.values().filter(asks).map(|run| run.pane).collect()
        });
        let panes = listed.into_iter().flat_map(|listed| &listed.panes).map(|pane| pane.pane);
        panes.filter(|pane| may_ask.contains(&PaneId(*pane))).collect()
    }

    /// Converts the listing of tmux to a snapshot. `pending_windows` names the windows that were being made when the
    /// listing began.
    fn session_snapshot(
        &self,
        key: &TaskSessionKey,
        listed: Option<&TmuxTaskSession>,
        cursors: &HashMap<u32, CursorScreen>,
        pending_windows: &[String],
    ) -> TaskSessionSnapshot {
        let (now, session) = (self.0.clock.now(), self.session(key));
        let Some(listed) = listed else { return TaskSessionSnapshot::missing(key.session.clone(), None, now) };
        // Ignore windows that were made for a task that has not started.
        let still_pending = self.pending_windows(key);
        let is_pending = |name: &String| still_pending.contains(name) || pending_windows.contains(name);
        let waits = |pane: &TaskPane| pane.awaits_run || pane.run.is_none() && is_pending(&pane.window_name);
        let mut windows: Vec<u32> = listed.panes.iter().filter(|pane| !waits(pane)).map(|pane| pane.window).collect();
        windows.dedup();
        let tasks = windows.iter().filter_map(|window| {
            let panes: Vec<&TaskPane> = listed.panes.iter().filter(|pane| pane.window == *window).collect();
            let pane = primary_pane(&panes, &session)?;
            Some(self.task_snapshot(pane, &session, cursors.get(&pane.pane)))
        });
        let tasks = tasks.collect();
        let server = Some(Generation { pid: listed.server_pid, start_time: listed.server_start });
        TaskSessionSnapshot { session_name: key.session.clone(), exists: true, captured_at: now, tasks, server }
    }

    fn task_snapshot(&self, pane: &TaskPane, session: &TaskSession, cursor: Option<&CursorScreen>) -> TaskSnapshot {
        let run: Option<RunId> = pane.run.as_ref().and_then(|run| run.parse().ok());
        let files = run.as_ref().map(|run| self.run_files(run));
        let awaits_launch = run.as_ref().is_some_and(|run| self.is_unregistered(run));
        // If the supervisor has recorded the end, the end is applied from the file, after all earlier output. Until
        // then the task counts as alive.
        let is_followed = awaits_launch || run.as_ref().is_some_and(|run| session.runs.contains_key(run));
        let has_exit_file = is_followed && files.as_ref().is_some_and(|files| files.read_exit().is_some());
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
            dead: pane.dead && !has_exit_file,
            exit_code: exit.code,
            signal: exit.signal,
            bell: pane.bell,
            bell_count: bells,
            output_preview: files.as_ref().map(log_tail).unwrap_or_default(),
            run,
            cursor_line: cursor.map(cursor_text),
            cursor_row: cursor.map(|cursor| cursor.line),
            answers: status.map_or(0, |status| status.answers),
            awaits_launch,
        }
    }

    /// The current tasks of the session for `task list`. Does not change the state machine.
    pub(super) async fn listed_snapshot(
        &self,
        key: &TaskSessionKey,
        listed: Option<&TmuxTaskSession>,
    ) -> TaskSessionSnapshot {
        let tmux = self.tmux(key);
        let mut snapshot = self.session_snapshot(key, listed, &HashMap::new(), &[]);
        for task in &mut snapshot.tasks {
            let mut panes = listed.into_iter().flat_map(|listed| &listed.panes);
            let Some(pane) = panes.find(|pane| Some(PaneId(pane.pane)) == task.pane_id) else { continue };
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
        snapshot
    }
}

/// Reads the session until every dead pane has an exit status, but at most `MAX_TRIES` times more. tmux shows a pane as
/// dead a moment before it knows the exit status. Sometimes tmux learns the status only when another child process
/// ends.
async fn session_with_exit_statuses(
    tmux: &TmuxServer,
    key: &TaskSessionKey,
) -> Result<Option<TmuxTaskSession>, TmuxError> {
    let lacks_status = |pane: &TaskPane| pane.dead && pane.dead_status.is_none() && pane.dead_signal.is_none();
    let mut session = tmux.task_session(key.session.as_str()).await?;
    for nth in 0..MAX_TRIES {
        if !session.as_ref().is_some_and(|session| session.panes.iter().any(lacks_status)) {
            break;
        }
        if nth + 1 == MAX_TRIES {
            tmux.reap_children().await?;
        }
        tokio::time::sleep(RETRY_DELAY).await;
        session = tmux.task_session(key.session.as_str()).await?;
    }
    Ok(session)
}

/// Whether the process runs. Also true if the process table cannot be read.
pub(super) fn is_alive(processes: &dyn ProcessTable, ProcessRef { pid, start }: ProcessRef) -> bool {
    let runs = |process: ProcessInfo| process.start == start && !process.zombie;
    processes.try_process(pid).map_or(true, |process| process.is_some_and(runs))
}

/// Whether this server generation still runs. The start times are compared with a tolerance: tmux reports whole seconds
/// of the wall clock, and the clock may have been changed since.
fn is_server_alive(processes: &dyn ProcessTable, server: Generation) -> bool {
    let is_tmux = |process: &ProcessInfo| process.name.starts_with(b"tmux") && !process.zombie;
    match processes.try_process(server.pid) {
        Ok(process) if process.as_ref().is_some_and(is_tmux) => {}
        Ok(_) => return false,
        Err(_) => return true,
    }
    let began = processes.started_at(server.pid).and_then(|at| Timestamp::try_from(at).ok());
    began.is_none_or(|at| (at.as_second() - server.start_time).abs() <= MAX_CLOCK_SKEW_SECS)
}

fn cursor_text(screen: &CursorScreen) -> String {
    let rows: Vec<&str> = screen.rows.iter().map(String::as_str).collect();
    cursor_line(&rows, screen.width, CursorPosition { x: screen.x, y: screen.y })
}

pub(super) fn pane_exit(pane: &TaskPane) -> TaskExit {
    let signal =
        pane.dead_signal.and_then(|number| u8::try_from(number).ok()).filter(|number| *number > 0).map(ExitSignal);
    TaskExit { code: pane.dead_status.filter(|_| signal.is_none() && pane.dead), signal }
}

/// The pane that the task was launched in. If that pane is gone, the first pane of the window.
fn primary_pane<'a>(panes: &[&'a TaskPane], session: &TaskSession) -> Option<&'a TaskPane> {
    let window = panes.first()?.window;
    let marked = || panes.iter().find(|pane| pane.is_task_pane).map(|pane| PaneId(pane.pane));
    let launched = session.runs_in(WindowId(window)).map(|run| run.pane).next().or_else(marked);
    panes.iter().find(|pane| Some(PaneId(pane.pane)) == launched).or(panes.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primary_is_the_launch_pane_or_the_first_pane() {
        let pane = |pane, is_task_pane| TaskPane { window: 1, pane, is_task_pane, ..TaskPane::default() };
        let (panes, unmarked) = ([&pane(4, false), &pane(2, true), &pane(7, false)], [&pane(4, false)]);
        let mut session = TaskSession::new("pi-x-1".parse().expect("a name"));
        let primary = |panes: &[&TaskPane], session: &TaskSession| primary_pane(panes, session).map(|pane| pane.pane);
        assert_eq!(primary(&panes, &session), Some(2), "tmux marks the launch pane");
        assert_eq!(primary(&unmarked, &session), Some(4));
        assert_eq!(primary(&[], &session), None);
        for (launched, expected) in [(7, 7), (9, 4)] {
            let run = TaskRunRow {
                run_id: "r1".parse().expect("an id"),
                task: "t".into(),
                generation: Generation { pid: 1, start_time: 1 },
                window: WindowId(1),
                pane: PaneId(launched),
                process: ProcessRef { pid: 2, start: 3 },
                launched_at: Timestamp::UNIX_EPOCH,
            };
            session.runs.insert(run.run_id.clone(), run);
            assert_eq!(primary(&panes, &session), Some(expected));
        }
    }
}
