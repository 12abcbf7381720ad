//! `mirror start`: splits a pane and starts a shell in the new pane. The shell marks its prompts and commands in its
//! output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::{MirrorFiles, MirrorSpec};
use agtmux_api::wire::{MirrorItem, MirrorQuery, MirrorStartRequest};
use agtmux_core::ids::{ServerKey, SessionId, TargetName};
use agtmux_core::mirror::{MirrorMethod, MirrorShell};
use agtmux_tmux::{LaunchError, LaunchedPane, MirrorLaunch, SplitSource};
use tokio::time::Instant;
use uuid::Uuid;

use super::select::{pane_of, socket_of};
use super::terminal::SharedTerminal;
use super::{Mirrors, errors, shell_files};
use crate::actions::{MirrorActionEntry, MirrorPlace, RequestCaller, precondition, tmux_error};
use crate::observe::server_name;

/// How long a new shell may take to show its first prompt.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// The shell that a new terminal runs.
struct ChosenShell {
    shell: MirrorShell,
    program: PathBuf,
}

impl Mirrors {
    /// Starts a shared terminal beside a pane. If the pane or its session already has a terminal, returns that
    /// terminal.
    pub(crate) async fn open(&self, request: MirrorStartRequest, caller: &RequestCaller) -> ApiResult<MirrorItem> {
        if let Some(pane) = pane_of(request.pane.as_ref())? {
            let (summary, named) = ("adopt a pane as shared terminal", pane.to_string());
            let entry = MirrorActionEntry { caller, summary, pane: &named, text: None };
            let terminal = self.0.actions.audited_mirror(entry, self.adopt(&request, pane, caller)).await?;
            return Ok(self.item(&terminal));
        }
        let entry =
            MirrorActionEntry { caller, summary: "start a shared terminal", pane: &request.for_pane, text: None };
        let terminal = self.0.actions.audited_mirror(entry, self.ensure(&request, caller)).await?;
        self.wait_for_first_prompt(&terminal).await?;
        Ok(self.item(&terminal))
    }

    /// The shared terminal for a pane. Starts one if there is none.
    pub(super) async fn ensure(
        &self,
        request: &MirrorStartRequest,
        caller: &RequestCaller,
    ) -> ApiResult<Arc<SharedTerminal>> {
        let socket = socket_of(request.socket.as_ref())?;
        let for_pane = pane_of(Some(&request.for_pane))?.ok_or_else(errors::pane_gone)?;
        // Two requests for the same pane at the same time make only one terminal.
        let _turn = self.0.locks.take(format!("start {socket} {for_pane}")).await;
        let query = MirrorQuery { socket: Some(socket.clone()), pane: None, for_pane: Some(for_pane.to_string()) };
        match self.select(&query).await {
            Ok(terminal) if self.problem(&terminal).is_none() => return Ok(terminal),
            Err(error) if error.code != ErrorCode::RefNotFound => return Err(error),
            _ => {}
        }
        let source = self.tmux(&socket).split_source(for_pane.0).await.map_err(tmux_error)?;
        let source = source.ok_or_else(|| errors::no_pane(for_pane, &socket))?;
        let server = ServerKey { target: TargetName::local(), server: server_name(Path::new(&socket)) };
        let place = MirrorPlace { server, session: SessionId(source.session), for_pane: Some(for_pane) };
        self.0.actions.mirror_user(caller, &place, "start a shared terminal for this pane").await?;
        let chosen = chosen_shell(request.shell.as_deref(), &source)?;
        self.remove_closed();
        self.launch(&socket, &source, chosen, request.cwd.as_deref()).await
    }

    /// Forgets terminals that are closed and whose shell has ended, and removes their files.
    fn remove_closed(&self) {
        for terminal in self.terminals() {
            let has_reader = terminal.method() == MirrorMethod::Marks;
            if self.is_gone(&terminal) && (terminal.is_closed() || !has_reader) && !terminal.has_waiters() {
                self.forget(&terminal);
            }
        }
    }

    async fn launch(
        &self,
        socket: &str,
        source: &SplitSource,
        chosen: ChosenShell,
        cwd: Option<&str>,
    ) -> ApiResult<Arc<SharedTerminal>> {
        let tmux = self.tmux(socket);
        let pane = tmux.split_for_mirror(source).await.map_err(split_failed)?;
        let mirror_id = Uuid::now_v7().simple().to_string();
        let files = MirrorFiles::in_dir(&self.0.dir, &mirror_id);
        let cwd = cwd.map_or_else(|| String::from_utf8_lossy(&source.cwd).into_owned(), str::to_owned);
        let spec = MirrorSpec {
            mirror_id,
            nonce: Uuid::new_v4().simple().to_string(),
            shell: chosen.shell,
            program: chosen.program.display().to_string(),
            cwd,
            socket: socket.to_owned(),
            server_pid: source.server_pid,
            server_start: source.server_start,
            session: SessionId(source.session).to_string(),
            pane,
            for_pane: Some(source.pane),
            process: None,
            adopted: false,
        };
        let started = self.start_shell(&files, spec, source.session).await;
        if started.is_err() {
            files.remove();
            let _ = tmux.kill_pane((source.server_pid, source.server_start), pane).await;
        }
        let terminal = Arc::new(SharedTerminal::new(started?, files));
        self.add(terminal.clone());
        Ok(terminal)
    }

    /// Writes the files that the shell reads, and starts the shell. Returns the specification, completed by the shell's
    /// process.
    async fn start_shell(&self, files: &MirrorFiles, mut spec: MirrorSpec, session: u32) -> ApiResult<MirrorSpec> {
        let prepared = files.create().and_then(|()| shell_files::write(files, spec.shell, &spec.nonce));
        prepared.and_then(|()| files.write_spec(&spec)).map_err(|error| not_written(&error.to_string()))?;
        let words = |word: &str| [self.0.program.clone().into(), OsString::from(word), files.dir().into()];
        let program = words("mirror-shell");
        let reader = (spec.shell != MirrorShell::Posix).then(|| words("mirror-log"));
        let launch = MirrorLaunch {
            server_pid: spec.server_pid,
            server_start: spec.server_start,
            session,
            pane: spec.pane,
            mirror: &spec.mirror_id,
            program: &program,
            reader: reader.as_ref().map_or(&[], |words| words),
        };
        let launched = self.tmux(&spec.socket).launch_mirror(&launch).await;
        let LaunchedPane { pane_pid, .. } = launched.map_err(|error| match error {
            LaunchError::Tmux(error) => tmux_error(error),
            LaunchError::Gone => errors::pane_gone(),
        })?;
        let start = self.0.discovery.processes().start_time(pane_pid).ok_or_else(errors::pane_gone)?;
        spec.process = Some((pane_pid, start));
        files.write_spec(&spec).map_err(|error| not_written(&error.to_string()))?;
        Ok(spec)
    }

    /// Waits until the new shell can take a command.
    pub(super) async fn wait_for_first_prompt(&self, terminal: &SharedTerminal) -> ApiResult<()> {
        let deadline = Instant::now() + PROMPT_TIMEOUT;
        if terminal.method() == MirrorMethod::Screen {
            return self.learn_screen_prompt(terminal, deadline).await;
        }
        let seen = terminal.wait_for(deadline, |view| (view.state.seq > 0 || view.state.is_closed).then_some(())).await;
        if terminal.is_closed() {
            let message = format!("the shell '{}' ended at once", terminal.spec.program);
            return Err(precondition(message, "agtmux mirror start --shell bash   (another shell)"));
        }
        seen.ok_or_else(|| errors::no_prompt(terminal.spec.pane, PROMPT_TIMEOUT))
    }
}

fn chosen_shell(wanted: Option<&str>, source: &SplitSource) -> ApiResult<ChosenShell> {
    let name = wanted.unwrap_or(&source.default_shell);
    let found = shell_files::find(name).map(|(shell, program)| ChosenShell { shell, program });
    found.ok_or_else(|| {
        let base = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let is_supported = base.parse::<MirrorShell>().is_ok();
        let why = if is_supported { "is not installed" } else { "is not supported" };
        precondition(
            format!(
                "the shell '{name}' {why}; the shared terminal needs bash, zsh, fish or a POSIX shell such as dash"
            ),
            "agtmux mirror start --shell bash",
        )
    })
}

fn split_failed(error: agtmux_tmux::TmuxError) -> ApiError {
    let is_small = error.to_string().contains("no space for new pane");
    let error = tmux_error(error);
    if is_small { error.with_hint("make the window larger, or close a pane in it") } else { error }
}

fn not_written(error: &str) -> ApiError {
    ApiError::new(ErrorCode::NotStored, format!("the shared terminal was not started: cannot write its files: {error}"))
        .with_hint("agtmux daemon status")
}
