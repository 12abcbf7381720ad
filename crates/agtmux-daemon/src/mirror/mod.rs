//! Shared terminals: shells in panes that a person and an agent both use.
//!
//! The shell writes marks into its output. A separate reader process finds the marks, and writes the events of the
//! shell and the output of each command to files. The reader also works while no daemon runs. This module starts
//! shells, types commands, and answers requests from the files. A daemon that restarts finds everything that it missed
//! in the files.

mod activity;
mod adopt;
mod agent_shell;
mod environment;
mod errors;
mod exec;
mod follow;
mod item;
mod launch;
mod line_editor;
mod nested;
mod output_stream;
mod result;
mod screen;
mod screen_exec;
mod select;
mod shell_files;
mod supervise;
mod syntax;
mod terminal;
mod typing;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::MirrorFiles;
use agtmux_api::paths::Paths;
use agtmux_api::wire::{MirrorItem, MirrorQuery, MirrorScreen};
use agtmux_core::ids::{PaneId, SessionId};
use agtmux_core::mirror::MirrorMethod;
use agtmux_core::text;
use agtmux_tmux::TmuxServer;
use tokio::sync::Notify;

pub(crate) use activity::ActivityReader;
pub(crate) use output_stream::{OutputReader, OutputStep};

use crate::actions::{Actions, MirrorActionEntry, NamedLocks, RequestCaller, tmux_error};
use crate::engine::EngineHandle;
use crate::observe::Discovery;
use select::place;
use terminal::SharedTerminal;

/// The most lines of a terminal that one request may read.
const MAX_LINES: u32 = 10_000;

/// Runs shared terminals. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mirrors(Arc<MirrorsInner>);

struct MirrorsInner {
    engine: EngineHandle,
    discovery: Discovery,
    actions: Actions,
    dir: PathBuf,
    /// The path of the `agtmux` executable, which starts the shells and reads their output.
    program: PathBuf,
    /// The terminals, oldest first.
    terminals: Mutex<Vec<Arc<SharedTerminal>>>,
    /// Locks by name. For example, the lock of a terminal makes its commands run one after the other, and the lock of a
    /// pane prevents two requests from starting a terminal for it at the same time.
    locks: NamedLocks,
    /// The ids of requests that were cancelled before their command was typed.
    withdrawn: Mutex<BTreeSet<String>>,
    /// Wakes the task that follows the terminals when a terminal was added or removed.
    wake: Notify,
}

impl Mirrors {
    pub(crate) fn start(engine: EngineHandle, discovery: Discovery, actions: Actions, paths: &Paths) -> Self {
        let background = discovery.background().clone();
        let mirrors = Self(Arc::new(MirrorsInner {
            engine,
            discovery,
            actions,
            dir: paths.mirrors_dir(),
            program: crate::program::path(),
            terminals: Mutex::default(),
            locks: NamedLocks::default(),
            withdrawn: Mutex::default(),
            wake: Notify::new(),
        }));
        mirrors.load();
        let followed = mirrors.clone();
        background.keep("mirror_follower", move || followed.clone().follow());
        mirrors
    }

    /// Finds the terminals of an earlier daemon, and the shells that agents have used. Removes the files of terminals
    /// whose shell no longer runs.
    fn load(&self) {
        let entries = std::fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
        // The names are ids, which grow with time, so the oldest terminal comes first.
        names.sort();
        for files in names.iter().map(|dir| MirrorFiles::at(dir)) {
            self.restore_agent_shell(&files);
            match files.read_spec().ok().filter(|spec| spec.process.is_some_and(|process| self.is_alive(process))) {
                Some(spec) => {
                    let terminal = Arc::new(SharedTerminal::new(spec, files));
                    terminal.refresh();
                    terminal.end_unfollowed_command();
                    self.add(terminal.clone());
                    self.resume_execs(&terminal);
                }
                None => self.remove_files(&files),
            }
        }
    }

    fn is_alive(&self, (pid, start): (u32, u64)) -> bool {
        self.0.discovery.processes().start_time(pid) == Some(start)
    }

    fn is_gone(&self, terminal: &SharedTerminal) -> bool {
        terminal.spec.process.is_none_or(|process| !self.is_alive(process))
    }

    fn add(&self, terminal: Arc<SharedTerminal>) {
        self.0.terminals.lock().unwrap_or_else(PoisonError::into_inner).push(terminal);
        self.0.wake.notify_one();
    }

    fn terminals(&self) -> Vec<Arc<SharedTerminal>> {
        self.0.terminals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tmux(&self, socket: &str) -> TmuxServer {
        let config = self.0.discovery.config();
        TmuxServer::new(&config.tmux.program, socket, config.tmux_bridge.subprocess_timeout.0)
    }

    /// The screen of a terminal and the last lines of its history.
    pub(crate) async fn screen(&self, query: &MirrorQuery, lines: u32) -> ApiResult<MirrorScreen> {
        if lines > MAX_LINES {
            let error =
                ApiError::new(ErrorCode::BadRequest, format!("the number of lines must be at most {MAX_LINES}"));
            return Err(error.with_hint("ask for fewer lines"));
        }
        let terminal = self.select(query).await?;
        let tmux = self.tmux(&terminal.spec.socket);
        let capture = tmux.output(terminal.spec.pane, lines, false).await.map_err(tmux_error)?;
        let capture = capture.filter(|capture| Some(capture.pane_pid) == terminal.spec.process.map(|(pid, _)| pid));
        let capture = capture.ok_or_else(errors::pane_gone)?;
        let shown = text::from_bytes(&capture.screen);
        let mut rows: Vec<String> = shown.lines().map(|line| line.trim_end().to_owned()).collect();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        let from = rows.len().saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
        Ok(MirrorScreen { pane_id: PaneId(terminal.spec.pane), lines: rows.split_off(from) })
    }

    /// Closes a terminal.
    pub(crate) async fn stop(&self, query: &MirrorQuery, caller: &RequestCaller) -> ApiResult<MirrorItem> {
        let terminal = self.select(query).await?;
        let pane = PaneId(terminal.spec.pane).to_string();
        let entry = MirrorActionEntry { caller, summary: "close the shared terminal", pane: &pane, text: None };
        self.0.actions.audited_mirror(entry, self.close(&terminal, caller)).await
    }

    async fn close(&self, terminal: &Arc<SharedTerminal>, caller: &RequestCaller) -> ApiResult<MirrorItem> {
        self.0.actions.mirror_user(caller, &place(terminal)?, "close this shared terminal").await?;
        let item = self.item(terminal);
        let tmux = self.tmux(&terminal.spec.socket);
        match (terminal.spec.adopted, terminal.method()) {
            (false, _) => tmux.kill_pane(terminal.server(), terminal.spec.pane).await.map_err(tmux_error)?,
            (true, MirrorMethod::Marks) => {
                tmux.close_pipe(terminal.server(), terminal.spec.pane).await.map_err(tmux_error)?;
            }
            // The pane has no pipe, or one of the person.
            (true, MirrorMethod::Screen) => {}
        }
        if let Ok(session) = terminal.spec.session.parse::<SessionId>() {
            for name in ["PI_MIRROR_PANE", "PI_LAST_RC"] {
                // The session is gone if this was its last pane.
                let _ = tmux.set_session_variable(terminal.server(), session.0, name, None).await;
            }
        }
        self.forget(terminal);
        Ok(item)
    }

    fn forget(&self, terminal: &Arc<SharedTerminal>) {
        self.0.terminals.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| !Arc::ptr_eq(known, terminal));
        // Requests that wait for a command learn that its result is lost.
        terminal.close();
        self.remove_files(&terminal.files);
        self.remove_ended_agent_shells();
        self.0.wake.notify_one();
    }
}
