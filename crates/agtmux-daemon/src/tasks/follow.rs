//! Watches the run files of tasks, and checks their sessions in tmux when a window may have changed.

use std::path::Path;
use std::time::{Duration, Instant};

use agtmux_api::task_files::{RunFiles, read_log};
use agtmux_core::fleet::{PaneKey, PaneTaskStatus};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{RunId, TaskInput};
use agtmux_tmux::platform::{self, Platform, PlatformOptions, WatchToken};
use tokio::sync::broadcast::error::RecvError;

use super::run_files::{READER_CHECK_INTERVAL, RunChanges};
use super::task_registry::{TaskRegistry, TrackedRun, TrackedSession};
use super::{TaskSessionKey, Tasks};
use crate::observe::server_name;
use crate::store::TaskRunRow;

const WATCH: WatchToken = WatchToken(1);
/// The interval of checks if files cannot be watched, and of retries after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How much of the end of the log is read for the output preview.
const TAIL_BYTES: u64 = 16 << 10;
/// How long to sleep if nothing is due.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

impl Tasks {
    /// Runs until the daemon stops.
    pub(super) async fn follow(self, begun: Vec<(RunId, RunFiles)>) {
        let mut task_panes = self.0.engine.subscribe_task_panes();
        let platform = platform::open(PlatformOptions { pty_events: false, force_portable: false });
        let mut platform = platform
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; checking tasks once a second"))
            .ok();
        let mut watched = self.watch(platform.as_ref());
        self.restore(begun).await;
        loop {
            let next = self.do_due_work().await;
            let until = if watched { next } else { next.min(Instant::now() + RETRY_INTERVAL) };
            let file_changed = async {
                match platform.as_mut() {
                    Some(platform) => platform.signals.recv().await.is_some(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                more = file_changed => match more {
                    true => watched = self.watch(platform.as_ref()),
                    false => (platform, watched) = (None, false),
                },
                () = self.0.wake.notified() => {}
                pane = task_panes.recv() => match pane {
                    Ok(pane) => self.check_sessions_of(Some(&pane)).await,
                    Err(RecvError::Lagged(_)) => self.check_sessions_of(None).await,
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    fn watch(&self, platform: Option<&Platform>) -> bool {
        platform.is_some_and(|platform| platform.watcher.watch_dir_contents(WATCH, &self.0.dir).is_ok())
    }

    /// Plans a check of the session that holds this pane. `None` means all sessions.
    async fn check_sessions_of(&self, pane: Option<&PaneKey>) {
        let mut registry = self.0.registry.lock().await;
        for (key, session) in &mut registry.sessions {
            let is_there = |pane: &PaneKey| {
                pane.server.server == server_name(Path::new(&key.socket))
                    && (session.runs.values().any(|run| run.row.pane == pane.pane)
                        || session.machine.has_pane(pane.pane))
            };
            if pane.is_none_or(is_there) && !(session.runs.is_empty() && session.machine.is_empty()) {
                session.check_by(Instant::now());
            }
        }
    }

    /// Restores the runs of the store, and adopts runs that an earlier daemon started but did not store.
    async fn restore(&self, begun: Vec<(RunId, RunFiles)>) {
        let mut registry = self.0.registry.lock().await;
        for (key, session) in &mut registry.sessions {
            session.check_by(Instant::now());
            for run in session.runs.values() {
                self.observe_task(key, &run.row, Some(PaneTaskStatus::Running)).await;
            }
        }
        let known: Vec<RunId> = registry.sessions.values().flat_map(|session| session.runs.keys().cloned()).collect();
        drop(registry);
        for (run_id, files) in begun.into_iter().filter(|(run_id, _)| !known.contains(run_id)) {
            if !self.adopt(&run_id, &files).await {
                self.adopt_later(run_id, files);
            }
        }
    }

    /// Retries [`Self::adopt`] until it succeeds.
    pub(super) fn adopt_later(&self, run_id: RunId, files: RunFiles) {
        let tasks = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(RETRY_INTERVAL).await;
                if tasks.adopt(&run_id, &files).await {
                    return;
                }
            }
        });
    }

    pub(super) fn run_specs_in_dir(&self) -> Vec<(RunId, RunFiles)> {
        let Ok(entries) = std::fs::read_dir(&self.0.dir) else { return Vec::new() };
        let of_run = |path: std::path::PathBuf| {
            let run_id: RunId = path.file_stem()?.to_str()?.parse().ok()?;
            let is_spec = path.extension().is_some_and(|extension| extension == "run");
            is_spec.then(|| (run_id.clone(), RunFiles::in_dir(&self.0.dir, run_id.as_str())))
        };
        entries.flatten().filter_map(|entry| of_run(entry.path())).collect()
    }

    /// Adopts a run that has a spec file but is not stored, because the daemon ended or the tmux server did not
    /// answer. If its window shows the run, it was started.
    ///
    /// Returns false if tmux cannot tell, or the store failed.
    async fn adopt(&self, run_id: &RunId, files: &RunFiles) -> bool {
        let removed = || {
            files.remove();
            true
        };
        let spec = files.read_spec();
        let key = spec.as_ref().ok().and_then(|spec| self.session_key(&spec.session, Some(&spec.socket)).ok());
        let (Ok(spec), Some(key)) = (spec, key) else { return removed() };
        // Hold the lock so that no other task starts in its window.
        let _lock = self.lock_session(&key).await;
        let is_over = self.0.registry.lock().await.session(&key).machine.has_ended(run_id);
        if is_over {
            // The end is stored; only the files are left to remove.
            return removed();
        }
        let tmux = self.tmux(&key);
        let Ok(session) = tmux.task_session(key.session.as_str()).await else { return false };
        if session.is_none() && self.is_unreachable(&tmux, &key).await {
            return false;
        }
        let pane = session.as_ref().and_then(|session| {
            let shows =
                session.panes.iter().find(|pane| pane.is_task_pane && pane.run.as_deref() == Some(run_id.as_str()))?;
            self.is_ours(&session.owner).then_some((session, shows))
        });
        let Some((session, pane)) = pane else {
            // It was never started, or its window is gone.
            files.remove_log();
            return removed();
        };
        let start = self.0.discovery.processes().start_time(pane.pane_pid).unwrap_or(0);
        let row = TaskRunRow {
            run_id: run_id.clone(),
            socket: key.socket.clone(),
            session: key.session.to_string(),
            task: spec.task,
            generation: Generation { pid: session.server_pid, start_time: session.server_start },
            window: WindowId(pane.window),
            pane: PaneId(pane.pane),
            process: ProcessRef { pid: pane.pane_pid, start },
            launched_at: self.0.clock.now(),
            ended: false,
        };
        self.register_run(&key, row).await
    }

    /// Does all due work. Returns when work is due next.
    async fn do_due_work(&self) -> Instant {
        let mut registry = self.0.registry.lock().await;
        let keys: Vec<TaskSessionKey> = registry.sessions.keys().cloned().collect();
        let mut next = Instant::now() + MAX_SLEEP;
        for key in keys {
            let mut stored = self.read_run_files(&mut registry, &key, |_| false).await;
            if registry.session(&key).machine.next_tick_at().is_some_and(|at| at <= self.0.clock.now()) {
                stored &= self.apply_inputs(&mut registry, &key, vec![TaskInput::Tick], Vec::new()).await;
            }
            if self.take_due_check(&mut registry, &key) {
                // Check in the background, so that a server that does not answer blocks only its own sessions.
                tokio::spawn(self.clone().check_in_background(key.clone()));
            }
            // No file change announces that the store works again, so retry after an interval.
            let due = if stored { self.next_due(registry.session(&key)) } else { Instant::now() + RETRY_INTERVAL };
            next = next.min(due);
        }
        registry.sessions.retain(|_, session| session.is_active());
        // Always sleep a little, so that a busy loop cannot starve other tasks.
        next.max(Instant::now() + Duration::from_millis(1))
    }

    fn next_due(&self, session: &TrackedSession) -> Instant {
        let looks_at = [session.machine.next_snapshot_at()].into_iter().flatten().map(|at| self.0.clock.instant(at));
        // One check at a time. The next is planned when it ends.
        let looks = looks_at.chain(session.check_at).filter(|_| !session.checking);
        let wakes = session.machine.next_tick_at().map(|at| self.0.clock.instant(at));
        // A file change announces the end of the output, but not the death of its reader.
        let unread = session.runs.values().any(|run| run.unread_output.is_some());
        let of_ends = unread.then(|| Instant::now() + READER_CHECK_INTERVAL);
        let again = session.runs.values().filter_map(|run| run.recheck_at);
        let all = looks.chain(wakes).chain(of_ends).chain(again);
        all.min().unwrap_or_else(|| Instant::now() + MAX_SLEEP)
    }

    fn take_due_check(&self, registry: &mut TaskRegistry, key: &TaskSessionKey) -> bool {
        let session = registry.session(key);
        let request = session.machine.next_snapshot_at().is_some_and(|at| at <= self.0.clock.now());
        let due = session.check_at.is_some_and(|at| at <= Instant::now());
        if session.checking || !(request || due) {
            return false;
        }
        (session.checking, session.check_at) = (true, session.check_at.filter(|_| !due));
        true
    }

    /// Checks a session in the background. Plans another check if this one fails.
    async fn check_in_background(self, key: TaskSessionKey) {
        let done = self.check_session(&key).await;
        let mut registry = self.0.registry.lock().await;
        let session = registry.session(&key);
        session.checking = false;
        if !done {
            session.check_by(Instant::now() + RETRY_INTERVAL);
        }
        drop(registry);
        self.0.wake.notify_one();
    }

    /// Reads the files of a session's runs and applies the changes. For windows accepted by `at_once`, an end is
    /// applied even if the output is not read completely.
    ///
    /// Returns false if the store failed. The same changes are then found again.
    pub(super) async fn read_run_files(
        &self,
        registry: &mut TaskRegistry,
        key: &TaskSessionKey,
        at_once: impl Fn(WindowId) -> bool,
    ) -> bool {
        let now = Instant::now();
        let session = registry.session(key);
        let read = |run: &mut TrackedRun| (run.row.run_id.clone(), run.read_changes(now, at_once(run.row.window)));
        let mut changes: Vec<(RunId, RunChanges)> = session.runs.values_mut().map(read).collect();
        let inputs: Vec<TaskInput> =
            changes.iter_mut().flat_map(|(_, changes)| std::mem::take(&mut changes.inputs)).collect();
        if changes.iter().any(|(_, changes)| changes.check_screen) {
            session.check_by(now);
        }
        if !inputs.is_empty() && !self.apply_inputs(registry, key, inputs, Vec::new()).await {
            return false;
        }
        let session = registry.session(key);
        for (run_id, changes) in changes {
            if let Some(run) = session.runs.get_mut(&run_id) {
                run.mark_stored(changes, now);
            }
        }
        true
    }
}

impl TrackedSession {
    /// Whether there is still something to track.
    fn is_active(&self) -> bool {
        !self.runs.is_empty()
            || !self.machine.is_empty()
            || self.check_at.is_some()
            || !self.pending_windows.is_empty()
            || self.checking
    }
}

/// The last lines of the log.
pub(super) fn log_tail(files: &RunFiles) -> String {
    let bytes = read_log(&files.log(), TAIL_BYTES).unwrap_or_default();
    let lines = agtmux_core::output::lines(&bytes);
    let from = lines.len().saturating_sub(PREVIEW_LINES);
    lines[from..].join("\n")
}

const PREVIEW_LINES: usize = 20;
