//! `agtmux attach`: attaches to the pane of an agent.

mod remote;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_api::config::Config;
use agtmux_api::wire::{ActionOutcome, AttachAction, AttachPlan};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::{sanitize, text};
use agtmux_tmux::{AttachMethod, PaneGuard, TmuxServer, TypeError, is_listening, socket_of_tmux_variable};
use clap::Args;

use super::guards::GuardArgs;
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Outside tmux, runs `tmux attach-session`. Inside the same tmux server, switches your client to the \
    pane. Inside another tmux server, or without a terminal, prints the command to run and exits with 1.\n\n\
    For a pane on another host, runs `ssh -t`: in this terminal, or in a new window if you are inside tmux.\n\n\
    Examples:\n  agtmux attach %12\n  agtmux attach claude --if-state waiting_approval"
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Print the command instead of running it
    #[arg(long, conflicts_with = "json")]
    print: bool,
    /// Print the location of the pane as JSON instead of attaching
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<AttachArgs>) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let typed = guards.r#ref.clone();
    let answer = daemon.act("/v1/actions/attach", &AttachAction { guards }).await?;
    if args.json {
        return output::json_answer(&answer);
    }
    let done: ActionOutcome<AttachPlan> = parse(&answer)?;
    let guard = guard(&done)?;
    let reference = done.runtime_id.as_ref().map_or(typed, |id| format!("runtime:{id}"));
    if let Some(ssh) = &done.report.ssh {
        return remote::attach(&done, ssh, guard, &reference, args.print);
    }
    let tmux = Config::load(&daemon.paths.config)?.tmux;
    let socket = PathBuf::from(OsString::from_vec(text::to_bytes(&done.report.socket)));
    let server = TmuxServer::new(&tmux.program, &socket, tmux.command_timeout.0);
    let local = LocalAttach { program: tmux.program, socket, server, guard, plan: &done.report, reference };
    if args.print {
        return output::line(&local.command_line(AttachMethod::Attach));
    }
    match socket_of_tmux_variable(&std::env::var("TMUX").unwrap_or_default()) {
        Some(socket) if same_file(&socket, &local.socket) => local.switch().await,
        // TMUX may name a tmux server that has ended. Fail only if that server still runs: the user is then inside that
        // server, not inside the pane's server.
        Some(socket) if is_listening(&socket) => Err(local.other_server_error(&socket)),
        _ if !on_terminal() => print_for_terminal(&local.command_line(AttachMethod::Attach), &local.reference),
        _ => local.attach().await,
    }
}

fn on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Prints the command, so that the user can run it on a terminal. Then fails, because this process has no terminal.
fn print_for_terminal(command_line: &str, reference: &str) -> CliResult {
    output::line(command_line)?;
    Err(CliError::failed("cannot attach: stdin or stdout is not a terminal")
        .because("run the printed command on a terminal")
        .hint(format!("agtmux attach {reference}")))
}

fn guard(done: &ActionOutcome<AttachPlan>) -> CliResult<PaneGuard> {
    let AttachPlan { server_pid, server_start, pane_pid, .. } = done.report;
    let pane = done.pane_id.trim_start_matches('%').parse();
    let pane = pane.map_err(|_| CliError::io("read the daemon's response", "the pane id is invalid"))?;
    Ok(PaneGuard { server_pid, server_start, pane, pane_pid })
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

struct LocalAttach<'a> {
    program: PathBuf,
    socket: PathBuf,
    server: TmuxServer,
    guard: PaneGuard,
    plan: &'a AttachPlan,
    /// The reference that error messages suggest: the runtime id if the daemon reported one, otherwise the reference
    /// that the user typed.
    reference: String,
}

impl LocalAttach<'_> {
    fn command(&self, way: AttachMethod, session_id: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-S").arg(&self.socket).args(way.tmux_arguments(self.guard, session_id, &self.plan.window_id));
        command
    }

    /// The command, quoted for a shell.
    fn command_line(&self, way: AttachMethod) -> String {
        let command = self.command(way, &self.plan.session_id);
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
        let words: Vec<String> = [command.get_program()].into_iter().chain(command.get_args()).map(quoted).collect();
        sanitize::for_terminal(&words.join(" "))
    }

    /// Checks the pane first, because agtmux's error message is better than that of tmux. Then replaces this process by
    /// tmux, which checks the pane again.
    async fn attach(&self) -> CliResult {
        self.server.check_pane(self.guard).await.map_err(attach_error)?;
        let error = self.command(AttachMethod::Attach, &self.plan.session_id).env_remove("TMUX").exec();
        Err(CliError::io(&format!("start '{}'", self.program.display()), error))
    }

    async fn switch(&self) -> CliResult {
        self.server.check_pane(self.guard).await.map_err(attach_error)?;
        let session = self.current_session().unwrap_or_else(|| self.plan.session_id.clone());
        let done = self.command(AttachMethod::Switch, &session).output();
        let done = done.map_err(|error| CliError::io(&format!("start '{}'", self.program.display()), error))?;
        if done.status.success() {
            return Ok(());
        }
        let message_text = [done.stdout, done.stderr].concat();
        Err(CliError::failed("tmux did not switch to the pane")
            .because(String::from_utf8_lossy(&message_text).trim())
            .hint(format!("agtmux attach {}   (in another terminal)", self.reference)))
    }

    /// The session that the user's tmux client shows now, if that session contains the pane. The client can then stay
    /// in this session and need not switch to another session of the same group.
    fn current_session(&self) -> Option<String> {
        let mut ask = Command::new(&self.program);
        ask.arg("-S").arg(&self.socket).args(["display-message", "-p", "#{client_session}"]);
        let name = text::from_bytes(ask.output().ok()?.stdout.trim_ascii_end());
        self.plan.sessions.iter().find(|session| session.session_name == name).map(|session| session.session_id.clone())
    }

    fn other_server_error(&self, socket: &Path) -> CliError {
        CliError::failed("cannot attach: you are inside another tmux server")
            .because(format!(
                "you are on the server '{}', but the agent is on the server '{}'",
                socket.display(),
                self.socket.display()
            ))
            .hint(format!("agtmux attach {}   (in another terminal)", self.reference))
            .hint(format!("TMUX= agtmux attach {}   (nested, in this terminal)", self.reference))
    }
}

fn attach_error(error: TypeError) -> CliError {
    CliError::failed(format!("could not attach: {error}")).hint("agtmux list panes")
}
