//! `agtmux attach`: to an agent's pane, and to no other.

mod remote;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_api::config::Config;
use agtmux_api::wire::{ActionOutcome, AttachAction, AttachPlan};
use agtmux_core::{sanitize, text};
use agtmux_tmux::{AttachMethod, PaneGuard, TmuxServer, TypeError, is_listening, socket_of_tmux_variable};
use clap::Args;

use super::guards::GuardArgs;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Outside of tmux it becomes `tmux attach-session`; inside the same tmux server your client goes \
    there. Inside another tmux server, or without a terminal, it prints what to run and exits with 1. To a pane of \
    another host it becomes `ssh -t`, or opens a window for that in the tmux that you are in."
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Only print the command that goes there
    #[arg(long, conflicts_with = "json")]
    print: bool,
    /// Only print the way there as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<AttachArgs>) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let asked = guards.r#ref.clone();
    let answer = daemon.act("/v1/actions/attach", &AttachAction { guards }).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let done: ActionOutcome<AttachPlan> = parse(&answer)?;
    if let Some(ssh) = &done.report.ssh {
        return remote::attach(&done, ssh, (guard(&done)?, &asked), args.print);
    }
    let tmux = Config::load(&daemon.paths.config)?.tmux;
    let trip = LocalAttach::new(tmux.program, tmux.command_timeout.0, &done, &asked)?;
    if args.print {
        output::line(trip.command_line(AttachMethod::Attach).as_bytes())?;
        return Ok(CliExit::Ok);
    }
    match tmux_context(&trip) {
        TmuxContext::SameServer => trip.switch().await,
        TmuxContext::OtherServer(socket) => Err(trip.other_server_error(&socket)),
        TmuxContext::Outside if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) => {
            output::line(trip.command_line(AttachMethod::Attach).as_bytes())?;
            let message = CliMessage::new("there is no terminal to attach").because("the command above does it on one");
            Err(CliError::failed(message.hint(format!("agtmux attach {}", trip.reference))))
        }
        TmuxContext::Outside => trip.attach().await,
    }
}

fn guard(done: &ActionOutcome<AttachPlan>) -> Result<PaneGuard, CliError> {
    let AttachPlan { server_pid, server_start, pane_pid, .. } = done.report;
    let pane = done.pane_id.trim_start_matches('%').parse();
    let pane = pane.map_err(|_| CliError::io("read the daemon's answer", "the pane has no number"))?;
    Ok(PaneGuard { server_pid, server_start, pane, pane_pid })
}

/// Where we are, seen from where we want to be.
enum TmuxContext {
    Outside,
    /// In a pane of the same server.
    SameServer,
    /// In a pane of another server.
    OtherServer(PathBuf),
}

fn tmux_context(trip: &LocalAttach) -> TmuxContext {
    let variable = std::env::var("TMUX").unwrap_or_default();
    match socket_of_tmux_variable(&variable) {
        Some(socket) if same_file(&socket, &trip.socket) => TmuxContext::SameServer,
        // One that has ended is no server to be in.
        Some(socket) if is_listening(&socket) => TmuxContext::OtherServer(socket),
        _ => TmuxContext::Outside,
    }
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
    /// Names what is meant, also tomorrow.
    reference: String,
}

impl<'a> LocalAttach<'a> {
    fn new(
        program: PathBuf,
        timeout: std::time::Duration,
        done: &'a ActionOutcome<AttachPlan>,
        asked: &str,
    ) -> Result<Self, CliError> {
        let plan = &done.report;
        let socket = PathBuf::from(OsString::from_vec(text::to_bytes(&plan.socket)));
        let guard = guard(done)?;
        let reference = done.runtime_id.as_ref().map_or_else(|| asked.to_owned(), |id| format!("runtime:{id}"));
        let server = TmuxServer::new(&program, &socket, timeout);
        Ok(Self { program, socket, server, guard, plan, reference })
    }

    fn command(&self, way: AttachMethod, session_id: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-S").arg(&self.socket).args(way.tmux_arguments(self.guard, session_id, &self.plan.window_id));
        command
    }

    /// As it could be pasted into a shell.
    fn command_line(&self, way: AttachMethod) -> String {
        let command = self.command(way, &self.plan.session_id);
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"));
        let words: Vec<String> = [command.get_program()].into_iter().chain(command.get_args()).map(quoted).collect();
        sanitize::for_terminal(&words.join(" "))
    }

    /// Becomes tmux. What is different by now is told in our words, if there is time for it.
    async fn attach(&self) -> Result<CliExit, CliError> {
        self.server.check_pane(self.guard).await.map_err(attach_error)?;
        let error = self.command(AttachMethod::Attach, &self.plan.session_id).env_remove("TMUX").exec();
        Err(CliError::io(&format!("start '{}'", self.program.display()), error))
    }

    async fn switch(&self) -> Result<CliExit, CliError> {
        self.server.check_pane(self.guard).await.map_err(attach_error)?;
        let session = self.current_session().unwrap_or_else(|| self.plan.session_id.clone());
        let done = self.command(AttachMethod::Switch, &session).output();
        let done = done.map_err(|error| CliError::io(&format!("start '{}'", self.program.display()), error))?;
        if done.status.success() {
            return Ok(CliExit::Ok);
        }
        let said = [done.stdout, done.stderr].concat();
        let message = CliMessage::new("tmux did not go there").because(String::from_utf8_lossy(&said).trim());
        Err(CliError::failed(message.hint(format!("agtmux attach {}   (on a terminal of its own)", self.reference))))
    }

    /// The session that our client shows, if the pane is in it: nobody wants to leave it for its twin.
    fn current_session(&self) -> Option<String> {
        let mut ask = Command::new(&self.program);
        ask.arg("-S").arg(&self.socket).args(["display-message", "-p", "#{client_session}"]);
        let name = text::from_bytes(ask.output().ok()?.stdout.trim_ascii_end());
        self.plan.sessions.iter().find(|session| session.session_name == name).map(|session| session.session_id.clone())
    }

    fn other_server_error(&self, socket: &Path) -> CliError {
        let message =
            CliMessage::new("this is a pane of another tmux server, and one in the other would be hard to leave")
                .because(format!("you are on '{}', the agent is on '{}'", socket.display(), self.socket.display()))
                .hint(format!("agtmux attach {}   (in another terminal)", self.reference))
                .hint(format!("TMUX= agtmux attach {}   (here, all the same)", self.reference));
        CliError::failed(message)
    }
}

fn attach_error(error: TypeError) -> CliError {
    CliError::failed(CliMessage::new(format!("nobody was brought there: {error}")).hint("agtmux list panes"))
}
