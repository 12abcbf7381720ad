//! `agtmux attach`, `agtmux next` and `agtmux back`: bring the person to the pane of an agent, and back.

mod back;
mod calling_client;
mod local;
mod next;
mod places;
mod remote;
mod travel;

use std::io::IsTerminal;
use std::path::PathBuf;

use agtmux_api::config::{Config, TmuxConfig};
use agtmux_api::wire::{ActionGuards, ActionOutcome, AttachAction, AttachPlan};
use agtmux_client::{DaemonClient, parse};
use agtmux_tmux::PaneGuard;
use clap::Args;

pub(crate) use back::{BackArgs, run as back};
pub(crate) use calling_client::{CLIENT_VARIABLE, CallingClient, ClientArgs};
pub(crate) use next::{NextArgs, run as next};

use super::guards::GuardArgs;
use crate::error::{CliError, CliResult};
use crate::output;
use local::LocalAttach;

#[derive(Debug, Args)]
#[command(
    after_help = "Outside tmux, runs `tmux attach-session`. Inside tmux, moves your tmux client to the pane, also to another tmux \
    server: your terminal comes back when you detach there. `agtmux back` returns to the pane before. Without a terminal, \
    prints the command to run and exits with 1.\n\n\
    For a pane on another host, runs `ssh -t`: in this terminal, or in a window of your session if you are inside tmux.\n\n\
    Examples:\n  agtmux attach %12\n  agtmux attach claude --if-state waiting_approval"
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    guards: GuardArgs,
    #[command(flatten)]
    client: ClientArgs,
    /// Print the command instead of running it
    #[arg(long, conflicts_with = "json")]
    print: bool,
    /// Print the location of the pane as JSON instead of attaching
    #[arg(long)]
    json: bool,
    /// Internal: the socket of the tmux server to which this terminal returns when the person detaches
    #[arg(long, hide = true, value_name = "SOCKET", requires = "return_session")]
    return_to: Option<PathBuf>,
    /// Internal: the session to which this terminal returns
    #[arg(long, hide = true, value_name = "ID", requires = "return_to")]
    return_session: Option<String>,
}

pub(crate) async fn run(args: Box<AttachArgs>) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let tmux = Config::load(&daemon.paths.config)?.tmux;
    if let (Some(socket), Some(session)) = (&args.return_to, &args.return_session) {
        let home = travel::TravelHome::new(socket.clone(), session)?;
        return travel::run(&daemon, &tmux, home, args.guards.unresolved()?).await;
    }
    if args.print || args.json {
        let plan = AttachTarget::plan(&daemon, args.guards.resolved(&daemon).await?).await?;
        return match args.json {
            true => output::json_answer(&plan.answer),
            false => plan.print(&tmux),
        };
    }
    match args.client.find(&tmux).await? {
        None => {
            let plan = AttachTarget::plan(&daemon, args.guards.resolved(&daemon).await?).await?;
            plan.attach_here(&tmux).await
        }
        Some(client) => {
            let moved = async {
                let plan = AttachTarget::plan(&daemon, args.guards.resolved(&daemon).await?).await?;
                plan.move_client(&daemon, &tmux, &client).await
            };
            client.report(&args.client, moved.await).await
        }
    }
}

/// A pane to which a person can be brought.
struct AttachTarget {
    /// The response of the daemon.
    answer: bytes::Bytes,
    outcome: ActionOutcome<AttachPlan>,
    guard: PaneGuard,
    /// The reference that error messages suggest: the runtime id if the daemon reported one, otherwise the reference
    /// that the user typed.
    reference: String,
}

impl AttachTarget {
    async fn plan(daemon: &DaemonClient, guards: ActionGuards) -> CliResult<Self> {
        let typed = guards.r#ref.clone();
        let answer = daemon.act("/v1/actions/attach", &AttachAction { guards }).await?;
        let outcome: ActionOutcome<AttachPlan> = parse(&answer)?;
        let AttachPlan { server_pid, server_start, pane_pid, .. } = outcome.report;
        let pane = outcome.pane_id.trim_start_matches('%').parse();
        let pane = pane.map_err(|_| CliError::io("read the daemon's response", "the pane id is invalid"))?;
        let guard = PaneGuard { server_pid, server_start, pane, pane_pid };
        let reference = outcome.runtime_id.as_ref().map_or(typed, |id| format!("runtime:{id}"));
        Ok(Self { answer, outcome, guard, reference })
    }

    fn print(&self, tmux: &TmuxConfig) -> CliResult {
        match &self.outcome.report.ssh {
            Some(ssh) => remote::print(self, ssh),
            None => output::line(&LocalAttach::new(self, tmux).command_line()),
        }
    }

    /// Attaches in this terminal, which is outside tmux.
    async fn attach_here(&self, tmux: &TmuxConfig) -> CliResult {
        if !on_terminal() {
            self.print(tmux)?;
            return Err(CliError::failed("cannot attach: stdin or stdout is not a terminal")
                .because("run the printed command on a terminal")
                .hint(format!("agtmux attach {}", self.reference)));
        }
        match &self.outcome.report.ssh {
            Some(ssh) => remote::attach(self, ssh),
            None => LocalAttach::new(self, tmux).attach().await,
        }
    }

    /// Moves the tmux client to the pane.
    async fn move_client(&self, daemon: &DaemonClient, tmux: &TmuxConfig, client: &CallingClient) -> CliResult {
        let records = places::ClientRecords::new(&daemon.paths);
        let mut record = records.read(&client.view);
        match &self.outcome.report.ssh {
            Some(ssh) => remote::open_window(self, ssh, client).await?,
            None => {
                let local = LocalAttach::new(self, tmux);
                if !local.is_on_server_of(client) {
                    return travel::depart(&local, client, &records, record).await;
                }
                local.switch(client).await?;
            }
        }
        record.push(client.view.place());
        records.write(client.view.client.pid, &record)
    }
}

fn on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
