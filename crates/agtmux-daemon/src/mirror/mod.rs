//! Shared terminals: shells in panes that a person and an agent both use.
//!
//! The shell writes marks into its output. A reader process, which needs no daemon, finds them and writes the events of
//! the shell and the output of each command to files. This module starts shells, types commands, and answers from the
//! files. A daemon that restarts finds everything that it missed.

mod activity;
mod errors;
mod exec;
mod follow;
mod launch;
mod output_stream;
mod result;
mod shell_files;
mod supervise;
mod syntax;
mod terminal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::MirrorFiles;
use agtmux_api::paths::Paths;
use agtmux_api::wire::{MirrorItem, MirrorList, MirrorQuery, MirrorRunningItem, MirrorScreen, MirrorStatus};
use agtmux_core::ids::{PaneId, ServerKey, SessionId, TargetName};
use agtmux_core::text;
use agtmux_tmux::{TmuxServer, default_socket};
use tokio::sync::Notify;

pub(crate) use activity::ActivityReader;
pub(crate) use output_stream::{OutputReader, OutputStep};

use crate::actions::{Actions, MirrorActionEntry, MirrorPlace, NamedLocks, RequestCaller, precondition, tmux_error};
use crate::observe::{Discovery, server_name};
use terminal::SharedTerminal;

/// The most lines that one request may read.
const MAX_LINES: u32 = 10_000;

/// Runs shared terminals. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mirrors(Arc<MirrorsInner>);

struct MirrorsInner {
    discovery: Discovery,
    actions: Actions,
    dir: PathBuf,
    /// The `agtmux` executable that starts the shells and reads their output.
    program: PathBuf,
    /// The terminals, oldest first.
    terminals: Mutex<Vec<Arc<SharedTerminal>>>,
    /// One lock per terminal, so that commands run one after the other, and one per pane for starts.
    locks: NamedLocks,
    /// Wakes the follow loop when a terminal was added.
    wake: Notify,
}

impl Mirrors {
    pub(crate) fn start(discovery: Discovery, actions: Actions, paths: &Paths) -> Self {
        let background = discovery.background().clone();
        let mirrors = Self(Arc::new(MirrorsInner {
            discovery,
            actions,
            dir: paths.mirrors_dir(),
            program: crate::program::path(),
            terminals: Mutex::default(),
            locks: NamedLocks::default(),
            wake: Notify::new(),
        }));
        mirrors.load();
        let followed = mirrors.clone();
        background.keep("mirror_follower", move || followed.clone().follow());
        mirrors
    }

    /// Finds the terminals of an earlier daemon. Removes the files of those that are gone.
    fn load(&self) {
        let entries = std::fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
        // Ids grow with time.
        names.sort();
        for files in names.iter().map(|dir| MirrorFiles::at(dir)) {
            match files.read_spec().ok().filter(|spec| spec.process.is_some_and(|process| self.is_alive(process))) {
                Some(spec) => {
                    let terminal = Arc::new(SharedTerminal::new(spec, files));
                    terminal.refresh();
                    self.add(terminal.clone());
                    self.resume_execs(&terminal);
                }
                None => files.remove(),
            }
        }
    }

    fn is_alive(&self, (pid, start): (u32, u64)) -> bool {
        self.0.discovery.processes().start_time(pid) == Some(start)
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

    /// The terminals on one server, or all.
    pub(crate) fn list(&self, query: &MirrorQuery) -> ApiResult<MirrorList> {
        let chosen = match (&query.pane, &query.for_pane) {
            (None, None) => self.terminals(),
            _ => self.find(query)?.into_iter().collect(),
        };
        let socket = query.socket.as_ref().map(|socket| socket_of(Some(socket))).transpose()?;
        let is_wanted =
            |terminal: &&Arc<SharedTerminal>| socket.as_ref().is_none_or(|socket| terminal.spec.socket == *socket);
        let items = chosen.iter().filter(is_wanted);
        Ok(MirrorList { schema_version: SCHEMA_VERSION, items: items.map(|terminal| self.item(terminal)).collect() })
    }

    /// The live terminal that the query names, the newest first.
    fn find(&self, query: &MirrorQuery) -> ApiResult<Option<Arc<SharedTerminal>>> {
        let socket = socket_of(query.socket.as_ref())?;
        let (pane, for_pane) = (pane_of(query.pane.as_ref())?, pane_of(query.for_pane.as_ref())?);
        let matches = |terminal: &&Arc<SharedTerminal>| {
            let spec = &terminal.spec;
            spec.socket == socket
                && match (pane, for_pane) {
                    (Some(pane), _) => spec.pane == pane.0,
                    // A terminal is found from inside, too.
                    (None, Some(for_pane)) => spec.for_pane == Some(for_pane.0) || spec.pane == for_pane.0,
                    (None, None) => false,
                }
                && !terminal.is_closed()
        };
        Ok(self.terminals().iter().rev().find(matches).cloned())
    }

    /// The terminal that the query names, also by its session. Fails if there is none.
    async fn select(&self, query: &MirrorQuery) -> ApiResult<Arc<SharedTerminal>> {
        if let Some(found) = self.find(query)? {
            return Ok(found);
        }
        let of_session = match query.pane {
            None => self.of_session(query).await?,
            Some(_) => None,
        };
        of_session.ok_or_else(|| errors::no_terminal(query))
    }

    /// The newest terminal in the session of the caller's pane.
    async fn of_session(&self, query: &MirrorQuery) -> ApiResult<Option<Arc<SharedTerminal>>> {
        let Some(for_pane) = pane_of(query.for_pane.as_ref())? else { return Ok(None) };
        let socket = socket_of(query.socket.as_ref())?;
        let source = self.tmux(&socket).split_source(for_pane.0).await.map_err(tmux_error)?;
        let Some(source) = source else { return Ok(None) };
        let server = (source.server_pid, source.server_start);
        let session = SessionId(source.session).to_string();
        let is_there = |terminal: &&Arc<SharedTerminal>| {
            terminal.server() == server && terminal.spec.session == session && !terminal.is_closed()
        };
        Ok(self.terminals().iter().rev().find(is_there).cloned())
    }

    /// Why agtmux cannot follow the shell. `None` if it can.
    fn problem(&self, terminal: &SharedTerminal) -> Option<String> {
        let (pid, _) = terminal.spec.process?;
        let process = self.0.discovery.processes().process(pid)?;
        let program = Path::new(&terminal.spec.program).canonicalize().ok();
        if let (Some(exe), Some(program)) = (process.exe, program)
            && exe != program
            && exe.exists()
        {
            return Some(format!("the shell was replaced by '{}'", exe.display()));
        }
        (!terminal.files.has_reader()).then(|| "the process that reads its output has ended".into())
    }

    fn item(&self, terminal: &SharedTerminal) -> MirrorItem {
        let problem = self.problem(terminal);
        let (spec, view) = (&terminal.spec, terminal.view());
        let state = &view.state;
        let running = state.running.as_ref().map(|running| MirrorRunningItem {
            number: running.number,
            command: running.text.clone().or_else(|| view.commands.back()?.text.clone()),
            command_id: running.exec.clone(),
            since: running.since,
        });
        let status = match () {
            () if state.is_closed => MirrorStatus::Closed,
            () if problem.is_some() => MirrorStatus::Lost,
            () if state.running.is_some() => MirrorStatus::Running,
            () if state.seq == 0 => MirrorStatus::Starting,
            () => MirrorStatus::Ready,
        };
        MirrorItem {
            mirror_id: spec.mirror_id.clone(),
            socket: spec.socket.clone(),
            pane_id: PaneId(spec.pane),
            for_pane: spec.for_pane.map(PaneId),
            session: spec.session.clone(),
            shell: spec.shell,
            status,
            cwd: state.cwd.clone(),
            running,
            problem: problem.filter(|_| !state.is_closed),
            last_number: view.last_number,
        }
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
        tmux.kill_pane(terminal.server(), terminal.spec.pane).await.map_err(tmux_error)?;
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
        terminal.files.remove();
        self.0.wake.notify_one();
    }
}

/// Where a terminal is, to check which agents may use it.
fn place(terminal: &SharedTerminal) -> ApiResult<MirrorPlace> {
    let spec = &terminal.spec;
    let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&spec.socket)) };
    let session = spec.session.parse().map_err(|_| errors::pane_gone())?;
    Ok(MirrorPlace { server, session, for_pane: spec.for_pane.map(PaneId) })
}

fn socket_of(socket: Option<&String>) -> ApiResult<String> {
    match socket {
        Some(socket) if Path::new(socket).is_absolute() => Ok(real_path(Path::new(socket))),
        Some(socket) => Err(errors::bad(format!("'{socket}' is not an absolute path to a tmux socket"))),
        None => Ok(real_path(&default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()))),
    }
}

/// Callers may name one socket in several ways.
fn real_path(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn pane_of(pane: Option<&String>) -> ApiResult<Option<PaneId>> {
    let parse = |pane: &String| pane.parse().map_err(|_| errors::bad(format!("'{pane}' is not a pane; use %N")));
    pane.map(parse).transpose()
}

/// The error of a shell that agtmux cannot follow.
fn lost(why: &str) -> ApiError {
    precondition(
        format!("nothing was typed: agtmux cannot follow the shared terminal: {why}"),
        "agtmux mirror stop; agtmux mirror start   (makes a new one)",
    )
}
