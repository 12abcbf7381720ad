//! Follows the files that tasks leave behind, and looks at their sessions when something may have become of a window.

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
/// Where nothing tells, and where something could not be stored or read.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// As much of the end of the output as its last useful lines can be in.
const TAIL_BYTES: u64 = 16 << 10;
/// Where nothing is due.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

impl Tasks {
    /// Runs until the daemon stops.
    pub(super) async fn follow(self, begun: Vec<(RunId, RunFiles)>) {
        let mut stirred = self.0.engine.subscribe_task_panes();
        let platform = platform::open(PlatformOptions { pty_events: false, force_portable: false });
        let mut platform =
            platform.inspect_err(|error| tracing::warn!(%error, "tasks are looked at once a second")).ok();
        let mut watched = self.watch(platform.as_ref());
        self.restore(begun).await;
        loop {
            let next = self.do_due_work().await;
            let until = if watched { next } else { next.min(Instant::now() + RETRY_INTERVAL) };
            let told = async {
                match platform.as_mut() {
                    Some(platform) => platform.signals.recv().await.is_some(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                more = told => if more { watched = self.watch(platform.as_ref()) } else { platform = None; watched = false },
                () = self.0.wake.notified() => {}
                pane = stirred.recv() => match pane {
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

    /// A pane of a task has gone or died, or something beside it has changed: its session is looked at.
    async fn check_sessions_of(&self, pane: Option<&PaneKey>) {
        let mut book = self.0.registry.lock().await;
        for (place, session) in &mut book.sessions {
            let is_there = |pane: &PaneKey| {
                pane.server.server == server_name(Path::new(&place.socket))
                    && (session.runs.values().any(|run| run.row.pane == pane.pane)
                        || session.machine.has_pane(pane.pane))
            };
            if pane.is_none_or(is_there) && !(session.runs.is_empty() && session.machine.is_empty()) {
                session.check_by(Instant::now());
            }
        }
    }

    /// What was known when the daemon last stopped is what lives in panes, and what was begun is found again.
    async fn restore(&self, begun: Vec<(RunId, RunFiles)>) {
        let mut book = self.0.registry.lock().await;
        for (place, session) in &mut book.sessions {
            session.check_by(Instant::now());
            for run in session.runs.values() {
                self.observe_task(place, &run.row, Some(PaneTaskStatus::Running)).await;
            }
        }
        let known: Vec<RunId> = book.sessions.values().flat_map(|session| session.runs.keys().cloned()).collect();
        drop(book);
        for (run_id, files) in begun.into_iter().filter(|(run_id, _)| !known.contains(run_id)) {
            if !self.adopt(&run_id, &files).await {
                self.adopt_later(run_id, files);
            }
        }
    }

    /// A run of which it cannot be said yet whether it was started, or that it was cannot be stored: it is tried until it can.
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

    /// A run that was begun and is not stored, because the daemon ended or the server did not answer: where its window shows it, it
    /// has been started. False if that cannot be said.
    async fn adopt(&self, run_id: &RunId, files: &RunFiles) -> bool {
        let removed = || {
            files.remove();
            true
        };
        let spec = files.read_spec();
        let place = spec.as_ref().ok().and_then(|spec| self.session_key(&spec.session, Some(&spec.socket)).ok());
        let (Ok(spec), Some(place)) = (spec, place) else { return removed() };
        // Nobody starts another one in its window meanwhile.
        let _turn = self.lock_session(&place).await;
        let is_over = self.0.registry.lock().await.session(&place).machine.has_ended(run_id);
        if is_over {
            // All that is left to do is what the daemon did not come to.
            return removed();
        }
        let tmux = self.tmux(&place);
        let Ok(session) = tmux.task_session(place.session.as_str()).await else { return false };
        if session.is_none() && self.is_unreachable(&tmux, &place).await {
            return false;
        }
        let pane = session.as_ref().and_then(|session| {
            let shows =
                session.panes.iter().find(|pane| pane.is_task_pane && pane.run.as_deref() == Some(run_id.as_str()))?;
            self.is_ours(&session.owner).then_some((session, shows))
        });
        let Some((session, pane)) = pane else {
            // It never was, or nobody can ask for it any more.
            files.remove_log();
            return removed();
        };
        let start = self.0.discovery.processes().start_time(pane.pane_pid).unwrap_or(0);
        let row = TaskRunRow {
            run_id: run_id.clone(),
            socket: place.socket.clone(),
            session: place.session.to_string(),
            task: spec.task,
            generation: Generation { pid: session.server_pid, start_time: session.server_start },
            window: WindowId(pane.window),
            pane: PaneId(pane.pane),
            process: ProcessRef { pid: pane.pane_pid, start },
            launched_at: self.0.clock.now(),
            ended: false,
        };
        self.register_run(&place, row).await
    }

    /// Everything that is due. Says when something is due next.
    async fn do_due_work(&self) -> Instant {
        let mut book = self.0.registry.lock().await;
        let places: Vec<TaskSessionKey> = book.sessions.keys().cloned().collect();
        let mut next = Instant::now() + MAX_SLEEP;
        for place in places {
            let mut stored = self.read_run_files(&mut book, &place, |_| false).await;
            if book.session(&place).machine.next_tick_at().is_some_and(|at| at <= self.0.clock.now()) {
                stored &= self.apply_inputs(&mut book, &place, vec![TaskInput::Tick], Vec::new()).await;
            }
            if self.take_due_check(&mut book, &place) {
                // A server that does not answer keeps nobody waiting but those who ask for it.
                tokio::spawn(self.clone().check_in_background(place.clone()));
            }
            // What could not be stored is told again, and no file tells when.
            let due = if stored { self.next_due(book.session(&place)) } else { Instant::now() + RETRY_INTERVAL };
            next = next.min(due);
        }
        book.sessions.retain(|_, session| session.is_active());
        // Even where everything is due at once others get their turn.
        next.max(Instant::now() + Duration::from_millis(1))
    }

    fn next_due(&self, session: &TrackedSession) -> Instant {
        let looks_at = [session.machine.next_snapshot_at()].into_iter().flatten().map(|at| self.0.clock.instant(at));
        // One look at a time: when it is over, it is looked what is due then.
        let looks = looks_at.chain(session.check_at).filter(|_| !session.checking);
        let wakes = session.machine.next_tick_at().map(|at| self.0.clock.instant(at));
        // That it is read to the end is told by its file; that there is nobody left to read it is not.
        let unread = session.runs.values().any(|run| run.unread_output.is_some());
        let of_ends = unread.then(|| Instant::now() + READER_CHECK_INTERVAL);
        let again = session.runs.values().filter_map(|run| run.recheck_at);
        let all = looks.chain(wakes).chain(of_ends).chain(again);
        all.min().unwrap_or_else(|| Instant::now() + MAX_SLEEP)
    }

    fn take_due_check(&self, book: &mut TaskRegistry, place: &TaskSessionKey) -> bool {
        let session = book.session(place);
        let asked = session.machine.next_snapshot_at().is_some_and(|at| at <= self.0.clock.now());
        let due = session.check_at.is_some_and(|at| at <= Instant::now());
        if session.checking || !(asked || due) {
            return false;
        }
        (session.checking, session.check_at) = (true, session.check_at.filter(|_| !due));
        true
    }

    /// Looks at a session beside everything else. What could not be seen, or not be stored, is looked at again.
    async fn check_in_background(self, place: TaskSessionKey) {
        let done = self.check_session(&place).await;
        let mut book = self.0.registry.lock().await;
        let session = book.session(&place);
        session.checking = false;
        if !done {
            session.check_by(Instant::now() + RETRY_INTERVAL);
        }
        drop(book);
        self.0.wake.notify_one();
    }

    /// Reads the files of a session's runs. The ends of those in windows of which `at_once` is true are told whether their output was read
    /// or not. False if something could not be stored: then it is told again.
    pub(super) async fn read_run_files(
        &self,
        book: &mut TaskRegistry,
        place: &TaskSessionKey,
        at_once: impl Fn(WindowId) -> bool,
    ) -> bool {
        let now = Instant::now();
        let session = book.session(place);
        let read = |run: &mut TrackedRun| (run.row.run_id.clone(), run.read_changes(now, at_once(run.row.window)));
        let mut news: Vec<(RunId, RunChanges)> = session.runs.values_mut().map(read).collect();
        let inputs: Vec<TaskInput> = news.iter_mut().flat_map(|(_, news)| std::mem::take(&mut news.inputs)).collect();
        if news.iter().any(|(_, news)| news.check_screen) {
            session.check_by(now);
        }
        if !inputs.is_empty() && !self.apply_inputs(book, place, inputs, Vec::new()).await {
            return false;
        }
        let session = book.session(place);
        for (run_id, news) in news {
            if let Some(run) = session.runs.get_mut(&run_id) {
                run.mark_stored(news, now);
            }
        }
        true
    }
}

impl TrackedSession {
    /// A machine without windows remembers nothing that is of use.
    fn is_active(&self) -> bool {
        !self.runs.is_empty()
            || !self.machine.is_empty()
            || self.check_at.is_some()
            || !self.pending_windows.is_empty()
            || self.checking
    }
}

/// The last lines that it wrote.
pub(super) fn log_tail(files: &RunFiles) -> String {
    let bytes = read_log(&files.log(), TAIL_BYTES).unwrap_or_default();
    let lines = agtmux_core::output::lines(&bytes);
    let from = lines.len().saturating_sub(PREVIEW_LINES);
    lines[from..].join("\n")
}

const PREVIEW_LINES: usize = 20;
