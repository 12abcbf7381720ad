//! Follows the files that tasks leave behind, and looks at their sessions when something may have become of a window.

use std::path::Path;
use std::time::{Duration, Instant};

use agtmux_api::task_files::{RunFiles, read_log};
use agtmux_core::fleet::{PaneKey, TaskStand};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{RunId, TaskInput};
use agtmux_tmux::platform::{self, Options, Platform, Token};
use tokio::sync::broadcast::error::RecvError;

use super::book::{Book, Run, Session};
use super::run_news::{LOOK_AGAIN_AT_LOG, News};
use super::{Place, Tasks};
use crate::observe::server_name;
use crate::store::RunRow;

const WATCH: Token = Token(1);
/// Where nothing tells, and where something could not be stored or read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// As much of the end of the output as its last useful lines can be in.
const TAIL: u64 = 16 << 10;
/// Where nothing is due.
const FAR_OFF: Duration = Duration::from_secs(3600);

impl Tasks {
    /// Runs until the daemon stops.
    pub(super) async fn follow(self, begun: Vec<(RunId, RunFiles)>) {
        let mut stirred = self.0.engine.stirred();
        let platform = platform::open(Options { pty_events: false, force_portable: false });
        let mut platform =
            platform.inspect_err(|error| tracing::warn!(%error, "tasks are looked at once a second")).ok();
        let mut watched = self.watch(platform.as_ref());
        self.come_back(begun).await;
        loop {
            let next = self.work().await;
            let until = if watched { next } else { next.min(Instant::now() + LOOK_AGAIN) };
            let told = async {
                match platform.as_mut() {
                    Some(platform) => platform.signals.recv().await.is_some(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                more = told => if more { watched = self.watch(platform.as_ref()) } else { platform = None; watched = false },
                () = self.0.nudge.notified() => {}
                pane = stirred.recv() => match pane {
                    Ok(pane) => self.note_stirred(Some(&pane)).await,
                    Err(RecvError::Lagged(_)) => self.note_stirred(None).await,
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    fn watch(&self, platform: Option<&Platform>) -> bool {
        platform.is_some_and(|platform| platform.watcher.watch_contents(WATCH, &self.0.dir).is_ok())
    }

    /// A pane of a task has gone or died, or something beside it has changed: its session is looked at.
    async fn note_stirred(&self, pane: Option<&PaneKey>) {
        let mut book = self.0.book.lock().await;
        for (place, session) in &mut book.sessions {
            let is_there = |pane: &PaneKey| {
                pane.server.server == server_name(Path::new(&place.socket))
                    && (session.runs.values().any(|run| run.row.pane == pane.pane)
                        || session.machine.has_pane(pane.pane))
            };
            if pane.is_none_or(is_there) && !(session.runs.is_empty() && session.machine.is_empty()) {
                session.look_by(Instant::now());
            }
        }
    }

    /// What was known when the daemon last stopped is what lives in panes, and what was begun is found again.
    async fn come_back(&self, begun: Vec<(RunId, RunFiles)>) {
        let mut book = self.0.book.lock().await;
        for (place, session) in &mut book.sessions {
            session.look_by(Instant::now());
            for run in session.runs.values() {
                self.observe(place, &run.row, Some(TaskStand::Running)).await;
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
                tokio::time::sleep(LOOK_AGAIN).await;
                if tasks.adopt(&run_id, &files).await {
                    return;
                }
            }
        });
    }

    pub(super) fn files_in_dir(&self) -> Vec<(RunId, RunFiles)> {
        let Ok(entries) = std::fs::read_dir(&self.0.dir) else { return Vec::new() };
        let of_run = |path: std::path::PathBuf| {
            let run_id: RunId = path.file_stem()?.to_str()?.parse().ok()?;
            let is_spec = path.extension().is_some_and(|extension| extension == "run");
            is_spec.then(|| (run_id.clone(), RunFiles::of(&self.0.dir, run_id.as_str())))
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
        let place = spec.as_ref().ok().and_then(|spec| self.place(&spec.session, Some(&spec.socket)).ok());
        let (Ok(spec), Some(place)) = (spec, place) else { return removed() };
        // Nobody starts another one in its window meanwhile.
        let _turn = self.turn(&place).await;
        let is_over = self.0.book.lock().await.session(&place).machine.has_ended(run_id);
        if is_over {
            // All that is left to do is what the daemon did not come to.
            return removed();
        }
        let tmux = self.tmux(&place);
        let Ok(session) = tmux.task_session(place.session.as_str()).await else { return false };
        if session.is_none() && self.is_cut_off(&tmux, &place).await {
            return false;
        }
        let pane = session.as_ref().and_then(|session| {
            let shows =
                session.panes.iter().find(|pane| pane.marked && pane.run.as_deref() == Some(run_id.as_str()))?;
            self.is_ours(&session.keeper).then_some((session, shows))
        });
        let Some((session, pane)) = pane else {
            // It never was, or nobody can ask for it any more.
            files.remove_log();
            return removed();
        };
        let start = self.0.discovery.processes().start_time(pane.pane_pid).unwrap_or(0);
        let row = RunRow {
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
        self.begin(&place, row).await
    }

    /// Everything that is due. Says when something is due next.
    async fn work(&self) -> Instant {
        let mut book = self.0.book.lock().await;
        let places: Vec<Place> = book.sessions.keys().cloned().collect();
        let mut next = Instant::now() + FAR_OFF;
        for place in places {
            let mut stored = self.scan_session(&mut book, &place, |_| false).await;
            if book.session(&place).machine.wakes_at().is_some_and(|at| at <= self.0.clock.now()) {
                stored &= self.tell(&mut book, &place, vec![TaskInput::TimePassed], Vec::new()).await;
            }
            if self.look_is_due(&mut book, &place) {
                // A server that does not answer keeps nobody waiting but those who ask for it.
                tokio::spawn(self.clone().look_and_tell(place.clone()));
            }
            // What could not be stored is told again, and no file tells when.
            let due = if stored { self.due(book.session(&place)) } else { Instant::now() + LOOK_AGAIN };
            next = next.min(due);
        }
        book.sessions.retain(|_, session| session.is_worth_keeping());
        // Even where everything is due at once others get their turn.
        next.max(Instant::now() + Duration::from_millis(1))
    }

    fn due(&self, session: &Session) -> Instant {
        let looks_at = [session.machine.looks_at()].into_iter().flatten().map(|at| self.0.clock.instant(at));
        // One look at a time: when it is over, it is looked what is due then.
        let looks = looks_at.chain(session.look_at).filter(|_| !session.looking);
        let wakes = session.machine.wakes_at().map(|at| self.0.clock.instant(at));
        // That it is read to the end is told by its file; that there is nobody left to read it is not.
        let unread = session.runs.values().any(|run| run.unread.is_some());
        let of_ends = unread.then(|| Instant::now() + LOOK_AGAIN_AT_LOG);
        let again = session.runs.values().filter_map(|run| run.again_at);
        let all = looks.chain(wakes).chain(of_ends).chain(again);
        all.min().unwrap_or_else(|| Instant::now() + FAR_OFF)
    }

    fn look_is_due(&self, book: &mut Book, place: &Place) -> bool {
        let session = book.session(place);
        let asked = session.machine.looks_at().is_some_and(|at| at <= self.0.clock.now());
        let due = session.look_at.is_some_and(|at| at <= Instant::now());
        if session.looking || !(asked || due) {
            return false;
        }
        (session.looking, session.look_at) = (true, session.look_at.filter(|_| !due));
        true
    }

    /// Looks at a session beside everything else. What could not be seen, or not be stored, is looked at again.
    async fn look_and_tell(self, place: Place) {
        let done = self.look(&place).await;
        let mut book = self.0.book.lock().await;
        let session = book.session(&place);
        session.looking = false;
        if !done {
            session.look_by(Instant::now() + LOOK_AGAIN);
        }
        drop(book);
        self.0.nudge.notify_one();
    }

    /// Reads the files of a session's runs. The ends of those in windows of which `at_once` is true are told whether their output was read
    /// or not. False if something could not be stored: then it is told again.
    pub(super) async fn scan_session(
        &self,
        book: &mut Book,
        place: &Place,
        at_once: impl Fn(WindowId) -> bool,
    ) -> bool {
        let now = Instant::now();
        let session = book.session(place);
        let read = |run: &mut Run| (run.row.run_id.clone(), run.news(now, at_once(run.row.window)));
        let mut news: Vec<(RunId, News)> = session.runs.values_mut().map(read).collect();
        let inputs: Vec<TaskInput> = news.iter_mut().flat_map(|(_, news)| std::mem::take(&mut news.inputs)).collect();
        if news.iter().any(|(_, news)| news.look) {
            session.look_by(now);
        }
        if !inputs.is_empty() && !self.tell(book, place, inputs, Vec::new()).await {
            return false;
        }
        let session = book.session(place);
        for (run_id, news) in news {
            if let Some(run) = session.runs.get_mut(&run_id) {
                run.was_told(news, now);
            }
        }
        true
    }
}

impl Session {
    /// A machine without windows remembers nothing that is of use.
    fn is_worth_keeping(&self) -> bool {
        !self.runs.is_empty()
            || !self.machine.is_empty()
            || self.look_at.is_some()
            || !self.pending.is_empty()
            || self.looking
    }
}

/// The last lines that it wrote.
pub(super) fn tail(files: &RunFiles) -> String {
    let bytes = read_log(&files.log(), TAIL).unwrap_or_default();
    let lines = agtmux_core::output::lines(&bytes);
    let from = lines.len().saturating_sub(PREVIEW_LINES);
    lines[from..].join("\n")
}

const PREVIEW_LINES: usize = 20;
