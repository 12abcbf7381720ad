//! Attaches to a pane on this machine.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_api::config::TmuxConfig;
use agtmux_api::wire::AttachPlan;
use agtmux_core::{sanitize, text};
use agtmux_tmux::{AttachMethod, PaneGuard, TmuxServer, TypeError};

use super::{AttachTarget, CallingClient};
use crate::error::{CliError, CliResult};

pub(super) struct LocalAttach<'a> {
    program: PathBuf,
    pub(super) socket: PathBuf,
    server: TmuxServer,
    guard: PaneGuard,
    plan: &'a AttachPlan,
    pub(super) reference: &'a str,
}

impl<'a> LocalAttach<'a> {
    pub(super) fn new(target: &'a AttachTarget, tmux: &TmuxConfig) -> Self {
        let plan = &target.outcome.report;
        let socket = PathBuf::from(OsString::from_vec(text::to_bytes(&plan.socket)));
        let server = TmuxServer::new(&tmux.program, &socket, tmux.command_timeout.0);
        let program = tmux.program.clone();
        Self { program, socket, server, guard: target.guard, plan, reference: &target.reference }
    }

    fn command(&self, method: AttachMethod<'_>, session_id: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-S").arg(&self.socket).args(method.tmux_arguments(self.guard, session_id, &self.plan.window_id));
        command
    }

    /// The command that attaches a terminal.
    pub(super) fn attach_command(&self) -> Command {
        let mut command = self.command(AttachMethod::Attach, &self.plan.session_id);
        command.env_remove("TMUX");
        command
    }

    /// The command that attaches a terminal, quoted for a shell.
    pub(super) fn command_line(&self) -> String {
        let command = self.attach_command();
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
        let words: Vec<String> = [command.get_program()].into_iter().chain(command.get_args()).map(quoted).collect();
        sanitize::for_terminal(&words.join(" "))
    }

    /// agtmux's error message is better than that of tmux, which checks the pane again.
    pub(super) async fn check(&self) -> CliResult {
        self.server.check_pane(self.guard).await.map_err(attach_error)
    }

    /// Replaces this process by tmux.
    pub(super) async fn attach(&self) -> CliResult {
        self.check().await?;
        let error = self.attach_command().exec();
        Err(CliError::io(&format!("start '{}'", self.program.display()), error))
    }

    pub(super) fn is_on_server_of(&self, client: &CallingClient) -> bool {
        same_file(&client.socket, &self.socket)
    }

    /// Shows the pane in the client, and in no other client.
    pub(super) async fn switch(&self, client: &CallingClient) -> CliResult {
        self.check().await?;
        let tty = &client.view.tty;
        let done = self.command(AttachMethod::Switch { tty }, &self.session_for(client)).output();
        let done = done.map_err(|error| CliError::io(&format!("start '{}'", self.program.display()), error))?;
        if done.status.success() {
            return Ok(());
        }
        let message_text = [done.stdout, done.stderr].concat();
        Err(CliError::failed("tmux did not switch to the pane")
            .because(String::from_utf8_lossy(&message_text).trim())
            .hint(format!("agtmux attach {}   (in another terminal)", self.reference)))
    }

    /// The session that the client shows now, if that session contains the pane. The client then stays in this session
    /// and does not switch to another session of the same group.
    fn session_for(&self, client: &CallingClient) -> String {
        let current = format!("${}", client.view.client.session);
        let stays = self.plan.sessions.iter().any(|session| session.session_id == current);
        if stays { current } else { self.plan.session_id.clone() }
    }
}

pub(super) fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

fn attach_error(error: TypeError) -> CliError {
    CliError::failed(format!("could not attach: {error}")).hint("agtmux list panes")
}
