//! Registers started runs with the engine. This includes runs that could not be stored at their start.

use std::time::{Duration, Instant};

use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::RunId;
use agtmux_tmux::platform::is_exhausted;
use agtmux_tmux::{LaunchedPane, TmuxTaskSession};

use super::Tasks;
use super::follow::RETRY_INTERVAL;
use super::run_files::replaced_exit;
use super::session_check::is_alive;
use crate::store::{TaskRunRow, TaskSessionKey};

/// How long a replaced task may take to record its exit.
const EXIT_RECORD_TIMEOUT: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl Tasks {
    /// The runs that have a spec file but are unknown to the engine.
    pub(super) fn find_unregistered_runs(&self) -> Vec<RunId> {
        let Ok(entries) = std::fs::read_dir(&self.0.dir) else { return Vec::new() };
        let sessions = self.0.engine.task_sessions().all();
        let unregistered_run = |path: std::path::PathBuf| {
            let run_id: RunId = path.file_stem()?.to_str()?.parse().ok()?;
            let is_spec = path.extension().is_some_and(|extension| extension == "run");
            let is_known = sessions.values().any(|session| session.runs.contains_key(&run_id));
            (is_spec && !is_known).then_some(run_id)
        };
        let runs: Vec<RunId> = entries.flatten().filter_map(|entry| unregistered_run(entry.path())).collect();
        runs.iter().for_each(|run_id| self.set_unregistered(run_id, true));
        runs
    }

    /// Retries [`Self::adopt`] until it succeeds.
    pub(super) fn adopt_later(&self, run_id: RunId) {
        let tasks = self.clone();
        self.0.discovery.background().run("task_adoption", async move {
            loop {
                tokio::time::sleep(RETRY_INTERVAL).await;
                if tasks.adopt(&run_id).await {
                    return;
                }
            }
        });
    }

    /// Handles a run that has a spec file but is not stored. This happens if the daemon ended or the tmux server did
    /// not answer while the run was being started. If a tmux window belongs to the run, registers the run. Otherwise
    /// deletes the files of the run.
    ///
    /// Returns false if tmux did not answer or if the store failed.
    pub(super) async fn adopt(&self, run_id: &RunId) -> bool {
        let files = self.run_files(run_id);
        let removed = || {
            files.remove();
            self.set_unregistered(run_id, false);
            true
        };
        let spec = files.read_spec();
        if spec.as_ref().is_err_and(is_exhausted) {
            return false;
        }
        let key = spec.as_ref().ok().and_then(|spec| self.session_key(&spec.session, Some(&spec.socket)).ok());
        let (Ok(spec), Some(key)) = (spec, key) else { return removed() };
        // Hold the lock so that no other task starts in the window of this run.
        let _lock = self.lock_session(&key).await;
        if self.session(&key).machine.has_ended(run_id) {
            // The end is stored; only the files are left to remove.
            return removed();
        }
        let Ok(session) = self.listed_session(&key).await else { return false };
        if session.is_none() && self.is_unreachable(&key).await {
            return false;
        }
        let own_session = session.filter(|session| self.is_ours(&session.owner));
        let shows_run = |session: TmuxTaskSession| {
            let mut panes = session.panes.iter();
            let pane = panes.find(|pane| pane.is_task_pane && pane.run.as_deref() == Some(run_id.as_str()))?;
            let at = LaunchedPane { window: pane.window, pane: pane.pane, pane_pid: pane.pane_pid };
            Some(self.run_row(&session, spec.task, run_id.clone(), at))
        };
        let Some(row) = own_session.and_then(shows_run) else {
            // The run was never started, or its window is gone.
            files.remove_log();
            return removed();
        };
        self.register_run(&key, row).await
    }

    pub(super) fn run_row(
        &self,
        session: &TmuxTaskSession,
        task: String,
        run_id: RunId,
        at: LaunchedPane,
    ) -> TaskRunRow {
        let start = self.0.discovery.processes().start_time(at.pane_pid).unwrap_or(0);
        TaskRunRow {
            run_id,
            task,
            generation: Generation { pid: session.server_pid, start_time: session.server_start },
            window: WindowId(at.window),
            pane: PaneId(at.pane),
            process: ProcessRef { pid: at.pane_pid, start },
            launched_at: self.0.clock.now(),
        }
    }

    /// Registers a started run. Returns false if the store failed: then the caller must try again.
    pub(super) async fn register_run(&self, key: &TaskSessionKey, row: TaskRunRow) -> bool {
        self.wait_for_exit_records(key, row.window).await;
        let (run_id, session) = (row.run_id.clone(), self.session(key));
        if !session.runs.contains_key(&run_id) {
            // An unfinished run in this window was replaced.
            let replaced = session.runs_in(row.window).map(|run| &run.run_id);
            let exits = replaced.filter_map(|run| replaced_exit(run, &self.run_files(run))).collect();
            if !self.apply(key, exits, Some(row)).await {
                return false;
            }
        }
        self.set_unregistered(&run_id, false);
        // Wake the follower, because the task may have ended before it was registered.
        self.0.wake.notify_one();
        true
    }

    /// Waits until the replaced tasks of this window have recorded their exits and their output is logged. Gives up
    /// after a timeout.
    async fn wait_for_exit_records(&self, key: &TaskSessionKey, window: WindowId) {
        let processes = self.0.discovery.processes();
        let until = Instant::now() + EXIT_RECORD_TIMEOUT;
        let lacks_exit_record =
            |run: &TaskRunRow| self.run_files(&run.run_id).read_exit().is_none() && is_alive(&*processes, run.process);
        while self.session(key).runs_in(window).any(lacks_exit_record) && Instant::now() < until {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.wait_for_readers(key, |affected| affected == window).await;
    }
}
