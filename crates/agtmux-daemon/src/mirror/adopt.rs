//! `mirror start --pane`: makes the shell of an existing pane a shared terminal.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::{MirrorFiles, MirrorSpec};
use agtmux_api::wire::{MirrorQuery, MirrorStartRequest};
use agtmux_core::ids::{PaneId, SessionId};
use agtmux_core::mirror::{MirrorMethod, MirrorShell, ShellEvent};
use agtmux_tmux::{SplitSource, quoted_for_shell};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::screen::{LOOK_INTERVAL, PromptScreen};
use super::select::{pane_of, place, socket_of};
use super::terminal::SharedTerminal;
use super::{Mirrors, errors, shell_files};
use crate::actions::{RequestCaller, precondition, tmux_error};

/// How long to wait for the prompt, and for the first mark.
const TIMEOUT: Duration = Duration::from_secs(3);

impl Mirrors {
    /// The terminal in this pane. Makes the pane a terminal if it is none.
    pub(super) async fn adopt(
        &self,
        request: &MirrorStartRequest,
        pane: PaneId,
        caller: &RequestCaller,
    ) -> ApiResult<Arc<SharedTerminal>> {
        let socket = socket_of(request.socket.as_ref())?;
        let _turn = self.0.locks.take(format!("start {socket} {pane}")).await;
        let query = MirrorQuery { socket: Some(socket.clone()), pane: Some(pane.to_string()), for_pane: None };
        if let Ok(terminal) = self.select(&query).await {
            return Ok(terminal);
        }
        let source = self.tmux(&socket).split_source(pane.0).await.map_err(tmux_error)?;
        let source = source.ok_or_else(|| errors::no_pane(pane, &socket))?;
        let for_pane = pane_of(Some(&request.for_pane))?.filter(|own| *own != pane);
        let spec = self.adopted_spec(&socket, &source, for_pane)?;
        let files = MirrorFiles::in_dir(&self.0.dir, &spec.mirror_id);
        let terminal = Arc::new(SharedTerminal::new(spec, files));
        self.refuse_agents(&terminal, caller).await?;
        let adopted = self.load_marks(&terminal, source.has_pipe).await;
        if adopted.is_err() {
            if !source.has_pipe {
                let _ = self.tmux(&socket).close_pipe(terminal.server(), pane.0).await;
            }
            terminal.files.remove();
        }
        adopted?;
        let (tmux, value) = (self.tmux(&socket), pane.to_string());
        // The variable is for scripts only.
        let _ = tmux.set_session_variable(terminal.server(), source.session, "PI_MIRROR_PANE", Some(&value)).await;
        self.add(terminal.clone());
        Ok(terminal)
    }

    /// A shell of a person may have rights that an agent must not get by itself.
    async fn refuse_agents(&self, terminal: &SharedTerminal, caller: &RequestCaller) -> ApiResult<()> {
        let what = "make an existing pane a shared terminal";
        let agent = self.0.actions.mirror_user(caller, &place(terminal)?, what).await?;
        match agent.filter(|_| !self.0.discovery.config().actions.allow_from_agents.all()) {
            Some(agent) => {
                let error = ApiError::new(
                    ErrorCode::CallerIsAgent,
                    format!("the caller is {agent}, and agents may not {what}"),
                );
                Err(error.with_hint("agtmux mirror start   (opens a new pane)"))
            }
            None => Ok(()),
        }
    }

    fn adopted_spec(&self, socket: &str, source: &SplitSource, for_pane: Option<PaneId>) -> ApiResult<MirrorSpec> {
        let process = self.0.discovery.processes().process(source.pane_pid).ok_or_else(errors::pane_gone)?;
        let exe = process.exe.clone().unwrap_or_default();
        let found = shell_files::find(&exe.display().to_string());
        let (shell, program): (MirrorShell, PathBuf) = found.ok_or_else(|| {
            let message = format!("'{}' in pane %{} is no shell that agtmux knows", exe.display(), source.pane);
            precondition(message, "agtmux mirror start   (opens a new pane)")
        })?;
        Ok(MirrorSpec {
            mirror_id: Uuid::now_v7().simple().to_string(),
            nonce: Uuid::new_v4().simple().to_string(),
            shell,
            program: program.display().to_string(),
            cwd: String::from_utf8_lossy(&source.cwd).into_owned(),
            socket: socket.to_owned(),
            server_pid: source.server_pid,
            server_start: source.server_start,
            session: SessionId(source.session).to_string(),
            pane: source.pane,
            for_pane: for_pane.map(|pane| pane.0),
            process: Some((process.pid, process.start)),
            adopted: true,
        })
    }

    /// Types a line that loads the marks, and waits for the first of them.
    async fn load_marks(&self, terminal: &SharedTerminal, has_pipe: bool) -> ApiResult<()> {
        let not_stored = |error: std::io::Error| errors::not_stored(&error.to_string());
        let (files, spec) = (&terminal.files, &terminal.spec);
        files.create().and_then(|()| files.write_spec(spec)).map_err(not_stored)?;
        // No other action types into the pane meanwhile.
        let _pane = self.0.actions.lock_pane(place(terminal)?.server, PaneId(spec.pane)).await;
        let prompt = self.wait_for_screen_prompt(terminal, Instant::now() + TIMEOUT).await;
        let prompt = prompt.map_err(|_| errors::no_empty_prompt(spec.pane))?;
        if spec.shell == MirrorShell::Posix {
            return self.add_prompt(terminal).map_err(not_stored);
        }
        let (left, right) = self.edited_line(terminal, &prompt).await?;
        if !left.is_empty() || !right.is_empty() {
            return Err(errors::no_empty_prompt(spec.pane));
        }
        let reader = [self.0.program.clone().into(), OsString::from("mirror-log"), files.dir().into()];
        if has_pipe || !self.tmux(&spec.socket).tap(spec.pane, &reader).await.map_err(tmux_error)? {
            // The pipe of the person stays, so the shell reports to a file.
            let started = files.write(&files.codes(), b"").and_then(|()| terminal.add_events([ShellEvent::PipeClosed]));
            started.map_err(not_stored)?;
        }
        let line = line_to_type(terminal, &prompt).map_err(not_stored)?;
        self.submit(terminal, &prompt, &line).await?;
        let until = Instant::now() + TIMEOUT;
        while terminal.view().state.seq == 0 {
            terminal.refresh();
            if terminal.method() == MirrorMethod::Screen && terminal.prompt_reports().count > 0 {
                return self.add_prompt(terminal).map_err(not_stored);
            }
            if Instant::now() >= until {
                return Err(errors::no_marks(spec.pane));
            }
            sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }
}

/// Writes the files that the shell reads, and returns the line that reads them.
fn line_to_type(terminal: &SharedTerminal, prompt: &PromptScreen) -> std::io::Result<String> {
    let (files, spec) = (&terminal.files, &terminal.spec);
    let word = if spec.shell == MirrorShell::Fish { "source" } else { "." };
    // Most shells keep a line that begins with a blank out of the history.
    let line = format!(" {word} {}", quoted_for_shell(&files.adopt().to_string_lossy()));
    let rows = (prompt.screen.x + line.chars().count()) / prompt.screen.width.max(1) + 1;
    shell_files::write_adopted(files, spec.shell, &spec.nonce, rows)?;
    Ok(line)
}
