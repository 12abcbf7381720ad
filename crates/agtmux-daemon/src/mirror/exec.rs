//! `mirror exec`: checks a request, hands its command to the shell and follows it to its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::mirror_files::MirrorExecRecord;
use agtmux_api::wire::{MirrorCommand, MirrorCommandQuery, MirrorExecRequest, MirrorQuery, MirrorStartRequest};
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::MirrorMethod;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::select::place;
use super::terminal::{ExecStatus, SharedTerminal, TerminalView};
use super::{Mirrors, errors, syntax};
use crate::actions::{MirrorActionEntry, RequestCaller};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 24 * 3600 * 1000;
const MAX_COMMAND_BYTES: usize = 128 << 10;
const MAX_ID_BYTES: usize = 64;
/// How long a request waits for the end of a command that the person runs.
pub(super) const PROMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for the end of earlier requests. The wait is limited, because the client must still be
/// connected when the command is typed.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);
/// How many cancelled requests the daemon remembers.
const MAX_WITHDRAWN: usize = 1000;

impl Mirrors {
    /// Runs a command in a shared terminal. Returns when the shell has taken the command. With `wait_ms`, waits up to
    /// that much longer for the command to end.
    pub(crate) async fn exec(&self, request: MirrorExecRequest, caller: &RequestCaller) -> ApiResult<MirrorCommand> {
        let exec = checked_request(&request)?;
        // A repeated request waits here until the first request has started its command or has failed.
        let _turn = self.0.locks.take(format!("request {exec}")).await;
        if self.terminal_of(&exec).is_none() {
            let terminal = self.terminal_for(&request, caller).await?;
            self.start_exec(terminal, &exec, request.clone(), caller.clone()).await?;
        }
        let wait_ms = request.wait_ms;
        self.command(&MirrorCommandQuery { command_id: exec, wait_ms, ..MirrorCommandQuery::default() }).await
    }

    /// Returns the terminal that the request names. If the request names only the caller's pane, and neither that pane
    /// nor its session has a terminal, starts one.
    async fn terminal_for(
        &self,
        request: &MirrorExecRequest,
        caller: &RequestCaller,
    ) -> ApiResult<Arc<SharedTerminal>> {
        let MirrorExecRequest { socket, pane, for_pane, shell, .. } = request.clone();
        let query = MirrorQuery { socket: socket.clone(), pane, for_pane };
        match (self.select(&query).await, query.for_pane.clone().filter(|_| query.pane.is_none())) {
            (Err(error), Some(for_pane)) if error.code == ErrorCode::RefNotFound => {
                let start = MirrorStartRequest { socket, for_pane, pane: None, shell, cwd: request.cwd.clone() };
                let (summary, pane) = ("start a shared terminal", start.for_pane.as_str());
                let entry = MirrorActionEntry { caller, summary, pane, text: None };
                let terminal = self.0.actions.audited_mirror(entry, self.ensure(&start, caller)).await?;
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
        is_started
            .await
            .unwrap_or_else(|_| Err(ApiError::new(ErrorCode::Internal, "starting the command failed unexpectedly")))
    }

    async fn run_exec(
        &self,
        terminal: &Arc<SharedTerminal>,
        exec: &str,
        request: &MirrorExecRequest,
        caller: &RequestCaller,
        started: &mut Option<oneshot::Sender<ApiResult<()>>>,
    ) -> ApiResult<()> {
        let agent = self.agent_of_exec(terminal, caller).await?;
        let timeout = Duration::from_millis(request.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
        let deadline = Instant::now() + timeout;
        let turn_deadline = deadline.min(Instant::now() + TURN_TIMEOUT);
        let turn = timeout_at(turn_deadline, self.0.locks.take(format!("exec {}", terminal.spec.mirror_id))).await;
        let _turn = turn.map_err(|_| errors::busy(&terminal.view(), terminal.spec.pane))?;
        self.check_followed(terminal)?;
        self.check_syntax(terminal, &request.command).await?;
        self.wait_until_free(terminal, deadline).await?;
        self.check_withdrawn(exec)?;
        let taken = self.hand_over(terminal, &new_record(exec, request, agent, timeout), &request.env, deadline).await;
        if taken.is_err() {
            // The shell may have put the line of the person aside before the command was refused.
            self.return_line(terminal).await;
        }
        taken?;
        if let Some(started) = started.take() {
            // The caller may be gone.
            let _ = started.send(Ok(()));
        }
        self.supervise(terminal, exec, deadline).await
    }

    /// Returns the agent behind the caller, if there is one. Refuses a caller that may not use the terminal, or that
    /// runs inside it.
    async fn agent_of_exec(&self, terminal: &SharedTerminal, caller: &RequestCaller) -> ApiResult<Option<String>> {
        let what = "run commands in this shared terminal";
        let agent = self.0.actions.mirror_user(caller, &place(terminal)?, what).await?;
        match terminal.spec.process.is_some_and(|process| self.0.actions.descends_from(caller, process)) {
            true => Err(errors::bad("agtmux mirror exec cannot be run inside the shared terminal itself".into())),
            false => Ok(agent),
        }
    }

    /// Stores the request and gives its command to the shell. If this returns an error, the shell does not run the
    /// command.
    async fn hand_over(
        &self,
        terminal: &Arc<SharedTerminal>,
        record: &MirrorExecRecord,
        env: &BTreeMap<String, String>,
        deadline: Instant,
    ) -> ApiResult<()> {
        let stored = self.keep_agent_shell(terminal, record).and_then(|()| terminal.files.add_exec(record));
        stored.map_err(|error| errors::not_stored(&error.to_string()))?;
        terminal.view().execs.insert(record.exec.clone(), ExecStatus::new(record.clone()));
        self.0.actions.begin_mirror_exec(terminal.spec.process, record);
        let typed = match terminal.method() {
            MirrorMethod::Marks => self.type_command(terminal, record, env, deadline).await,
            MirrorMethod::Screen => self.type_on_screen(terminal, record, env, deadline).await,
        };
        if typed.is_err() {
            terminal.view().execs.remove(&record.exec);
        }
        typed
    }

    /// Notes that agtmux must not type the command of this request any more.
    pub(super) fn withdraw(&self, exec: &str) {
        let mut withdrawn = self.0.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        if withdrawn.len() >= MAX_WITHDRAWN {
            withdrawn.clear();
        }
        withdrawn.insert(exec.to_owned());
    }

    fn check_withdrawn(&self, exec: &str) -> ApiResult<()> {
        let mut withdrawn = self.0.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        match withdrawn.remove(exec) {
            true => Err(errors::withdrawn()),
            false => Ok(()),
        }
    }

    fn check_followed(&self, terminal: &SharedTerminal) -> ApiResult<()> {
        if terminal.is_closed() {
            return Err(errors::pane_gone());
        }
        self.problem(terminal).map_or(Ok(()), |why| Err(errors::lost(&why)))
    }

    async fn check_syntax(&self, terminal: &SharedTerminal, command: &str) -> ApiResult<()> {
        let program = Path::new(&terminal.spec.program);
        let found = syntax::find_error(terminal.spec.shell, program, command).await;
        found.map_or(Ok(()), |why| Err(errors::incomplete(&why)))
    }

    /// Waits until the shell reads a new command, as its marks or its screen show.
    async fn wait_until_free(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<()> {
        if terminal.method() == MirrorMethod::Screen {
            return self.wait_for_screen_prompt(terminal, deadline).await.map(drop);
        }
        match self.wait_for_prompt(terminal, deadline).await {
            Err(_) if self.close_pipe_of_markless_shell(terminal).await => {
                self.wait_for_screen_prompt(terminal, deadline).await.map(drop)
            }
            waited => waited,
        }
    }

    /// Waits until the marks show that the shell reads a new command. A command of the person may run for a while.
    pub(super) async fn wait_for_prompt(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<()> {
        let deadline = deadline.min(Instant::now() + PROMPT_TIMEOUT);
        let is_there = |view: &TerminalView| (view.state.is_at_prompt() || view.state.is_closed).then_some(());
        let waited = terminal.wait_for(deadline, is_there).await;
        match waited {
            Some(()) if terminal.is_closed() => Err(errors::pane_gone()),
            Some(()) => Ok(()),
            None => Err(self
                .problem(terminal)
                .map_or_else(|| errors::busy(&terminal.view(), terminal.spec.pane), |why| errors::lost(&why))),
        }
    }
}

fn new_record(exec: &str, request: &MirrorExecRequest, agent: Option<String>, timeout: Duration) -> MirrorExecRecord {
    let typed_at = Timestamp::now();
    let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
    MirrorExecRecord {
        exec: exec.to_owned(),
        command: request.command.clone(),
        cwd: request.cwd.clone(),
        agent,
        typed_at,
        deadline: typed_at.checked_add(timeout).unwrap_or(Timestamp::MAX),
    }
}

/// Checks the fields of a request and returns the id of the request.
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
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| !is_usable_dir(Path::new(cwd))) {
        return Err(errors::bad(format!("'{}' is not the absolute path of a directory", cwd.escape_debug())));
    }
    super::environment::check(&request.env)?;
    match &request.command_id {
        None => Ok(Uuid::now_v7().simple().to_string()),
        Some(id) if is_plain_id(id) => Ok(id.clone()),
        Some(_) => Err(errors::bad(format!("command_id must be 1 to {MAX_ID_BYTES} letters, digits or '-'"))),
    }
}

/// Whether `path` is the absolute path of a directory that a shell can enter.
fn is_usable_dir(path: &Path) -> bool {
    path.is_absolute() && path.join(".").is_dir()
}

fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_are_refused() {
        let request = |command: &str| MirrorExecRequest { command: command.into(), ..MirrorExecRequest::default() };
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
