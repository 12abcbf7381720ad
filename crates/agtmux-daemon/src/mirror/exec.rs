//! `mirror exec`: types a command into the shell of a terminal.
//!
//! The command is written to a file. agtmux types only a key, at which the shell takes the command from the file, once.
//! A half-written line of the person is put aside and given back after the command.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::MirrorExecRecord;
use agtmux_api::wire::{MirrorCommand, MirrorCommandQuery, MirrorExecRequest, MirrorQuery, MirrorStartRequest};
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::MirrorShell;
use agtmux_tmux::{PaneInput, TypeError, TypeRefusal, quoted_for_shell};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::terminal::{ExecStatus, SharedTerminal, TerminalView};
use super::{Mirrors, errors, lost, place, syntax};
use crate::actions::{MirrorActionEntry, RequestCaller, type_error};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 24 * 3600 * 1000;
const MAX_COMMAND_BYTES: usize = 512 << 10;
const MAX_ID_BYTES: usize = 64;
/// How long to wait for the end of a command of the person.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the shell may take to take the command, before the key is typed again.
const TAKE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the key is typed. A program that has started meanwhile gets it otherwise.
const MAX_KEYS: u32 = 5;

/// The keys that the marks bind: take the command, submit it, give the line of the person back.
const TAKE_KEY: &[u8] = b"\x1b[24;8~";
const SUBMIT_KEY: &[u8] = b"\x1b[24;7~";
const RETURN_KEY: &[u8] = b"\x1b[24;6~";

impl Mirrors {
    /// Runs a command. Returns when the shell has taken it, or up to `wait_ms` later when it has ended.
    pub(crate) async fn exec(&self, request: MirrorExecRequest, caller: &RequestCaller) -> ApiResult<MirrorCommand> {
        let exec = checked_request(&request)?;
        // A repeated request waits here until the first one is known.
        let _turn = self.0.locks.take(format!("request {exec}")).await;
        if self.terminal_of(&exec).is_none() {
            let terminal = self.terminal_for(&request, caller).await?;
            self.start_exec(terminal, &exec, request.clone(), caller.clone()).await?;
        }
        let wait_ms = request.wait_ms;
        self.command(&MirrorCommandQuery { command_id: exec, wait_ms, ..MirrorCommandQuery::default() }).await
    }

    /// The terminal that the request names. Makes one if the request names only the caller's pane.
    async fn terminal_for(
        &self,
        request: &MirrorExecRequest,
        caller: &RequestCaller,
    ) -> ApiResult<Arc<SharedTerminal>> {
        let MirrorExecRequest { socket, pane, for_pane, .. } = request.clone();
        let query = MirrorQuery { socket: socket.clone(), pane, for_pane };
        match (self.select(&query).await, query.for_pane.clone().filter(|_| query.pane.is_none())) {
            (Err(error), Some(for_pane)) if error.code == ErrorCode::RefNotFound => {
                let start = MirrorStartRequest { socket, for_pane, shell: None, cwd: request.cwd.clone() };
                let terminal = self.ensure(&start, caller).await?;
                self.wait_for_first_prompt(&terminal).await?;
                Ok(terminal)
            }
            (found, _) => found,
        }
    }

    /// Types the command, and follows it to its end in the background.
    async fn start_exec(
        &self,
        terminal: Arc<SharedTerminal>,
        exec: &str,
        request: MirrorExecRequest,
        caller: RequestCaller,
    ) -> ApiResult<()> {
        let (started, is_started) = oneshot::channel();
        let (mirrors, exec) = (self.clone(), exec.to_owned());
        tokio::spawn(async move {
            let pane = PaneId(terminal.spec.pane).to_string();
            let entry = MirrorActionEntry {
                caller: &caller,
                summary: "run a command",
                pane: &pane,
                text: Some(&request.command),
            };
            let mut started = Some(started);
            let run = mirrors.run_exec(&terminal, &exec, &request, &caller, &mut started);
            let outcome = mirrors.0.actions.audited_mirror(entry, run).await;
            if let (Err(error), Some(started)) = (outcome, started) {
                // The caller may be gone.
                let _ = started.send(Err(error));
            }
        });
        is_started.await.unwrap_or_else(|_| Err(ApiError::new(ErrorCode::Internal, "the command failed unexpectedly")))
    }

    async fn run_exec(
        &self,
        terminal: &Arc<SharedTerminal>,
        exec: &str,
        request: &MirrorExecRequest,
        caller: &RequestCaller,
        started: &mut Option<oneshot::Sender<ApiResult<()>>>,
    ) -> ApiResult<()> {
        let place = place(terminal)?;
        let agent = self.0.actions.mirror_user(caller, &place, "run commands in this shared terminal").await?;
        if terminal.spec.process.is_some_and(|process| self.0.actions.descends_from(caller, process)) {
            return Err(errors::bad("this command runs in the shared terminal itself".into()));
        }
        let timeout = Duration::from_millis(request.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
        let deadline = Instant::now() + timeout;
        let _turn = timeout_at(deadline, self.0.locks.take(format!("exec {}", terminal.spec.mirror_id))).await;
        let _turn = _turn.map_err(|_| errors::busy(&terminal.view(), terminal.spec.pane))?;
        self.check_followed(terminal)?;
        self.check_syntax(terminal, &request.command).await?;
        let typed_at = Timestamp::now();
        let record = MirrorExecRecord {
            exec: exec.to_owned(),
            command: request.command.clone(),
            cwd: request.cwd.clone(),
            agent,
            typed_at,
            deadline: typed_at.checked_add(SignedDuration::try_from(timeout).unwrap_or_default()).unwrap_or(typed_at),
        };
        self.wait_for_prompt(terminal, deadline).await?;
        let stored = terminal.files.add_exec(&record);
        stored.map_err(|error| errors::bad(format!("cannot store the command: {error}")))?;
        terminal.view().execs.insert(exec.to_owned(), ExecStatus::new(record.clone()));
        self.0.actions.begin_mirror_exec(terminal.spec.process, &record);
        let typed = self.type_command(terminal, &record, deadline).await;
        if let Err(error) = typed {
            terminal.view().execs.remove(exec);
            self.0.actions.end_mirror_exec(terminal.spec.process, exec);
            return Err(error);
        }
        if let Some(started) = started.take() {
            let _ = started.send(Ok(()));
        }
        self.supervise(terminal, exec, deadline).await
    }

    fn check_followed(&self, terminal: &SharedTerminal) -> ApiResult<()> {
        if terminal.is_closed() {
            return Err(errors::pane_gone());
        }
        self.problem(terminal).map_or(Ok(()), |why| Err(lost(&why)))
    }

    async fn check_syntax(&self, terminal: &SharedTerminal, command: &str) -> ApiResult<()> {
        let program = Path::new(&terminal.spec.program);
        let found = syntax::find_error(terminal.spec.shell, program, command).await;
        found.map_or(Ok(()), |why| Err(errors::incomplete(&why)))
    }

    /// Waits until the shell reads a new command. A command of the person may run for a while.
    async fn wait_for_prompt(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<()> {
        let deadline = deadline.min(Instant::now() + PROMPT_TIMEOUT);
        let is_there = |view: &TerminalView| (view.state.is_at_prompt() || view.state.is_closed).then_some(());
        let waited = terminal.wait_for(deadline, is_there).await;
        match waited {
            Some(()) if terminal.is_closed() => Err(errors::pane_gone()),
            Some(()) => Ok(()),
            None => Err(self
                .problem(terminal)
                .map_or_else(|| errors::busy(&terminal.view(), terminal.spec.pane), |why| lost(&why))),
        }
    }

    /// Gives the command to the shell. After an error the shell does not run it.
    async fn type_command(
        &self,
        terminal: &SharedTerminal,
        record: &MirrorExecRecord,
        deadline: Instant,
    ) -> ApiResult<()> {
        let text = command_text(record, terminal.view().state.cwd.as_deref());
        let input = format!("{}\n{text}", record.exec);
        let written = terminal.files.write(&terminal.files.input(), input.as_bytes());
        written.map_err(|error| errors::bad(format!("cannot write the command: {error}")))?;
        if let Err(error) = self.type_until_taken(terminal, &record.exec, deadline).await {
            let _ = terminal.files.clear_input();
            // The shell may have taken the command just before.
            let until = Instant::now() + TAKE_TIMEOUT / 4;
            terminal.wait_for(until, |view| taken(view, &record.exec)).await.ok_or(error)?;
        }
        self.refuse_incomplete(terminal, &record.exec).await
    }

    /// Cancels a command that the shell finds incomplete.
    async fn refuse_incomplete(&self, terminal: &SharedTerminal, exec: &str) -> ApiResult<()> {
        let is_read = |view: &TerminalView| {
            let is_started = view.command_of(exec).is_some() || view.state.is_closed;
            (is_started || view.state.wants_more).then_some(!is_started)
        };
        // A shell that takes longer is followed like one that runs the command.
        let asks_for_more = terminal.wait_for(Instant::now() + TAKE_TIMEOUT, is_read).await.unwrap_or(false);
        if !asks_for_more {
            return Ok(());
        }
        self.interrupt(terminal, exec).await;
        Err(errors::incomplete("the shell asked for another line, and agtmux cancelled the command"))
    }

    async fn type_until_taken(&self, terminal: &SharedTerminal, exec: &str, deadline: Instant) -> ApiResult<()> {
        let key = take_key(terminal.spec.shell);
        let server = place(terminal)?.server;
        // No other action types into the pane meanwhile.
        let _pane = self.0.actions.lock_pane(server, PaneId(terminal.spec.pane)).await;
        for _ in 0..MAX_KEYS {
            self.type_keys(terminal, PaneInput::Bytes(&key)).await?;
            let until = deadline.min(Instant::now() + TAKE_TIMEOUT);
            if terminal.wait_for(until, |view| taken(view, exec)).await.is_some() {
                return Ok(());
            }
            self.wait_for_prompt(terminal, deadline).await?;
        }
        Err(lost("the shell does not react to the keys of agtmux"))
    }

    pub(super) async fn type_keys(&self, terminal: &SharedTerminal, keys: PaneInput<'_>) -> ApiResult<()> {
        let (tmux, guard) = (self.tmux(&terminal.spec.socket), terminal.guard());
        let leaves_mode = self.0.discovery.config().tmux_bridge.leave_copy_mode;
        match tmux.type_into(guard, keys).await {
            Err(TypeError::Refused(TypeRefusal::InMode)) if leaves_mode => {
                tmux.type_into(guard, PaneInput::LeaveMode).await.map_err(type_error)?;
                tmux.type_into(guard, keys).await
            }
            done => done,
        }
        .map_err(type_error)
    }

    /// Gives the line of the person back when the shell reads keys again.
    pub(super) async fn return_line(&self, terminal: &SharedTerminal) {
        if !terminal.view().state.has_stash {
            return;
        }
        let deadline = Instant::now() + PROMPT_TIMEOUT;
        let is_ready = |view: &TerminalView| view.state.is_at_prompt().then_some(());
        if terminal.wait_for(deadline, is_ready).await.is_some() {
            // The shell keeps the line until it is given back.
            let _ = self.type_keys(terminal, PaneInput::Bytes(RETURN_KEY)).await;
            terminal.wait_for(Instant::now() + TAKE_TIMEOUT, |view| (!view.state.has_stash).then_some(())).await;
        }
    }
}

fn taken(view: &TerminalView, exec: &str) -> Option<()> {
    view.execs.get(exec).is_some_and(|status| status.taken).then_some(())
}

/// zsh and fish submit the command themselves. In bash a second key does it, and only if the first one took a command.
fn take_key(shell: MirrorShell) -> Vec<u8> {
    match shell {
        MirrorShell::Bash => [TAKE_KEY, SUBMIT_KEY].concat(),
        MirrorShell::Zsh | MirrorShell::Fish => TAKE_KEY.to_vec(),
    }
}

/// The command as the shell runs it: in another directory only if the shell is not there.
fn command_text(record: &MirrorExecRecord, shell_cwd: Option<&str>) -> String {
    let command = record.command.trim_end_matches('\n');
    match record.cwd.as_deref().filter(|cwd| Some(*cwd) != shell_cwd) {
        Some(cwd) if command.contains('\n') => format!("cd {}\n{command}", quoted_for_shell(cwd)),
        Some(cwd) => format!("cd {} && {command}", quoted_for_shell(cwd)),
        None => command.to_owned(),
    }
}

/// Checks a request and returns its name.
fn checked_request(request: &MirrorExecRequest) -> ApiResult<String> {
    let command = &request.command;
    if command.trim().is_empty() {
        return Err(errors::bad("the command is empty".into()));
    }
    // Control characters would act on the line editor of the shell.
    let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if command.len() > MAX_COMMAND_BYTES || command.contains(is_control) {
        let limit = MAX_COMMAND_BYTES >> 10;
        return Err(errors::bad(format!("the command must have at most {limit} KiB and no control characters")));
    }
    if request.timeout_ms.is_some_and(|timeout| timeout == 0 || timeout > MAX_TIMEOUT_MS) {
        return Err(errors::bad("the timeout must be between 1 ms and 24 h".into()));
    }
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| !Path::new(cwd).is_absolute() || !Path::new(cwd).is_dir()) {
        return Err(errors::bad(format!("'{}' is not the absolute path of a directory", cwd.escape_debug())));
    }
    match &request.command_id {
        None => Ok(Uuid::now_v7().simple().to_string()),
        Some(id) if is_plain_id(id) => Ok(id.clone()),
        Some(_) => Err(errors::bad(format!("command_id must be 1 to {MAX_ID_BYTES} letters, digits or '-'"))),
    }
}

fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(command: &str, cwd: Option<&str>) -> MirrorExecRecord {
        MirrorExecRecord {
            exec: "e".into(),
            command: command.into(),
            cwd: cwd.map(str::to_owned),
            agent: None,
            typed_at: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_directory_is_changed_only_if_the_shell_is_elsewhere() {
        assert_eq!(command_text(&record("ls", None), Some("/a")), "ls");
        assert_eq!(command_text(&record("ls\n", Some("/a")), Some("/a")), "ls");
        assert_eq!(command_text(&record("ls", Some("/a b")), Some("/c")), "cd '/a b' && ls");
        assert_eq!(command_text(&record("a\nb", Some("/a")), None), "cd /a\na\nb");
    }

    #[test]
    fn invalid_requests_are_refused() {
        let request = |command: &str| MirrorExecRequest {
            socket: None,
            pane: None,
            for_pane: None,
            command: command.into(),
            cwd: None,
            timeout_ms: None,
            command_id: None,
            wait_ms: None,
        };
        assert!(checked_request(&request("echo é\n\tx")).is_ok());
        for bad in ["", " \n", "a\0", "a\x1b[24;7~", "a\rb", &"x".repeat(MAX_COMMAND_BYTES + 1)] {
            assert!(checked_request(&request(bad)).is_err(), "{bad:.20}");
        }
        for bad in [
            MirrorExecRequest { timeout_ms: Some(0), ..request("a") },
            MirrorExecRequest { cwd: Some("relative".into()), ..request("a") },
            MirrorExecRequest { cwd: Some("/nonexistent".into()), ..request("a") },
            MirrorExecRequest { command_id: Some("a/b".into()), ..request("a") },
        ] {
            assert!(checked_request(&bad).is_err(), "{bad:?}");
        }
    }
}
