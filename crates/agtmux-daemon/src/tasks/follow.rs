//! Follows the files that tasks leave behind, and looks at their sessions when something may have become of a window.

use std::path::Path;
use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, OutputStatus, RunFiles, read_log};
use agtmux_core::fleet::{PaneKey, TaskStand};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{Exit, RunId, Signal, TaskInput};
use agtmux_tmux::platform::{self, Options, Platform, Token};
use tokio::sync::broadcast::error::RecvError;

use super::book::{Book, Run, Session};
use super::{Place, READER_WITHIN, Tasks};
use crate::observe::server_name;
use crate::store::RunRow;

const WATCH: Token = Token(1);
/// Where nothing tells, and where something could not be stored or read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A task that was answered has gone on by then.
const ANSWERED: Duration = Duration::from_millis(250);
/// As much of the end of the output as its last useful lines can be in.
const TAIL: u64 = 16 << 10;
/// How often files of runs that are nobody's are looked for.
const FAR_OFF: Duration = Duration::from_secs(3600);

/// What is new of one run.
struct News {
    inputs: Vec<TaskInput>,
    look: bool,
}

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
        let Some((session, pane)) = pane else { return removed() };
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
            let mut stored = self.scan_session(&mut book, &place, false).await;
            if book.session(&place).machine.wakes_at().is_some_and(|at| at <= self.0.clock.now()) {
                stored &= self.tell(&mut book, &place, vec![TaskInput::TimePassed], Vec::new()).await;
            }
            if self.look_is_due(&mut book, &place) {
                // A server that does not answer keeps nobody waiting but those who ask for it.
                tokio::spawn(self.clone().look_and_tell(place.clone()));
            }
            let due = self.due(book.session(&place));
            next = next.min(if stored { due } else { due.max(Instant::now() + LOOK_AGAIN) });
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
        let of_ends = session.runs.values().filter_map(|run| run.ended_at.map(|at| at + READER_WITHIN));
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

    /// Reads the files of a session's runs. With `at_once` the ends that are written down are told without waiting for the readers of the
    /// output any longer than they may take.
    pub(super) async fn scan_session(&self, book: &mut Book, place: &Place, at_once: bool) -> bool {
        let now = Instant::now();
        let session = book.session(place);
        let mut inputs = Vec::new();
        let mut look = false;
        for run in session.runs.values_mut() {
            if at_once && run.files.read_exit().is_some() {
                run.wait_for_reader().await;
            }
            let news = run.news(now);
            inputs.extend(news.inputs);
            look |= news.look;
        }
        if look {
            session.look_by(now);
        }
        inputs.is_empty() || self.tell(book, place, inputs, Vec::new()).await
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

impl Run {
    /// How it ended, if it did so by itself and that was not told.
    pub(super) fn last_word(&mut self) -> Option<TaskInput> {
        let exit = self.files.read_exit().filter(|exit| !exit.hung_up)?;
        let bells = self.files.read_output().map_or(0, |status| status.bells).max(self.bells);
        Some(TaskInput::Finished { run: self.row.run_id.clone(), exit: exit_of(exit), bells, output: self.tail() })
    }

    pub(super) async fn wait_for_reader(&self) {
        let until = Instant::now() + READER_WITHIN;
        while Instant::now() < until && !self.files.read_output().is_some_and(|status| status.ended) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What its files tell that was not known.
    fn news(&mut self, now: Instant) -> News {
        let run = self.row.run_id.clone();
        // In this order: what is read of the output after the end is all of it.
        let exit = self.files.read_exit();
        let status = self.files.read_output();
        let OutputStatus { bells, quiet, ended, .. } =
            status.unwrap_or(OutputStatus { bells: self.bells, ..Default::default() });
        let bells = bells.max(self.bells);
        let mut news = News { inputs: Vec::new(), look: false };
        if let Some(exit) = exit {
            let since = *self.ended_at.get_or_insert(now);
            if ended || now >= since + READER_WITHIN {
                (self.bells, self.ended_at) = (bells, None);
                let (hung_up, exit, output) = (exit.hung_up, exit_of(exit), self.tail());
                // Whether its window was taken away from it is seen by a look.
                news.inputs.push(match hung_up {
                    true => TaskInput::Exited { run, exit, bells, output },
                    false => TaskInput::Finished { run, exit, bells, output },
                });
            }
            return news;
        }
        if bells > self.bells {
            self.bells = bells;
            news.inputs.push(TaskInput::Rang { run, bells, output: self.tail() });
        }
        if status.is_some() && quiet != self.quiet {
            self.quiet = quiet;
            let asked = matches!(self.stand, TaskStand::Asks(_));
            // It may ask something, or no longer do so: an answer that is being typed is none yet.
            news.look = quiet || asked;
            self.again_at = (asked && !quiet).then(|| now + ANSWERED);
        }
        news.look |= self.again_at.take_if(|at| *at <= now).is_some();
        news
    }

    /// The last lines that it wrote.
    pub(super) fn tail(&self) -> String {
        tail(&self.files)
    }
}

pub(super) fn tail(files: &RunFiles) -> String {
    let bytes = read_log(&files.log(), TAIL).unwrap_or_default();
    let lines = agtmux_core::output::lines(&bytes);
    let from = lines.len().saturating_sub(PREVIEW_LINES);
    lines[from..].join("\n")
}

const PREVIEW_LINES: usize = 20;

fn exit_of(record: ExitRecord) -> Exit {
    let signal = record.signal.and_then(|number| u8::try_from(number).ok()).map(Signal);
    Exit { code: record.code.filter(|_| signal.is_none()), signal }
}
