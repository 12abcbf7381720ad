//! Moves a terminal to another tmux server of this machine. The terminal comes back when the person detaches there.
//!
//! tmux cannot move a client to another server. So the client is detached, and `agtmux attach --return-to` takes over its
//! terminal: this process, the traveller, attaches a client of the other server and waits for its end.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use agtmux_api::config::TmuxConfig;
use agtmux_api::wire::ActionGuards;
use agtmux_client::DaemonClient;
use agtmux_tmux::quoted_for_shell;

use super::local::same_file;
use super::places::{ClientRecord, ClientRecords};
use super::{AttachTarget, CallingClient, LocalAttach};
use crate::error::{CliError, CliResult};

/// Where the terminal returns.
pub(super) struct TravelHome {
    socket: PathBuf,
    session: String,
}

impl TravelHome {
    pub(super) fn new(socket: PathBuf, session: &str) -> CliResult<Self> {
        let is_id = session.strip_prefix('$').is_some_and(|id| id.parse::<u32>().is_ok());
        match is_id {
            true => Ok(Self { socket, session: session.to_owned() }),
            false => Err(CliError::usage(format!("'{session}' is not the id of a tmux session"))),
        }
    }
}

/// Sends the client's terminal to the server of the pane.
pub(super) async fn depart(
    pane: &LocalAttach<'_>,
    client: &CallingClient,
    records: &ClientRecords,
    mut record: ClientRecord,
) -> CliResult {
    pane.check().await?;
    let detached = if record.travels() {
        // The traveller of this terminal goes on to the next server.
        record.next_agent = Some(pane.reference.to_owned());
        records.write(client.view.client.pid, &record)?;
        client.server.detach_client(&client.view.tty, None).await
    } else {
        let command = traveller_command(pane.reference, client)?;
        client.server.detach_client(&client.view.tty, Some(&command)).await
    };
    detached.map_err(|error| {
        CliError::failed("the tmux client could not leave its server")
            .because(error.to_string())
            .hint(format!("agtmux attach {}   (in another terminal)", pane.reference))
    })
}

/// The shell command that takes over the terminal of the client.
fn traveller_command(reference: &str, client: &CallingClient) -> CliResult<String> {
    let program = std::env::current_exe().map_err(|error| CliError::io("find the agtmux program", error))?;
    let session = format!("${}", client.view.client.session);
    let paths = [&program, &client.socket].map(|path| path.to_str().filter(|path| !path.contains('\n')));
    let [Some(program), Some(socket)] = paths else {
        return Err(CliError::failed("cannot move to another tmux server: a path is not valid text"));
    };
    let words = [program, "attach", reference, "--return-to", socket, "--return-session", &session];
    Ok(format!("exec {}", words.map(quoted_for_shell).join(" ")))
}

/// Attaches to the agent and to the agents that follow, then returns to the server from which the terminal came.
pub(super) async fn run(daemon: &DaemonClient, tmux: &TmuxConfig, home: TravelHome, guards: ActionGuards) -> CliResult {
    let records = ClientRecords::new(&daemon.paths);
    let mut next = Some(guards.r#ref.clone());
    let mut failure = None;
    while let Some(reference) = next.take() {
        let guards = ActionGuards { r#ref: reference, ..guards.clone() };
        match visit(daemon, tmux, &home, guards, &records).await {
            Ok(follows) => next = follows,
            Err(error) => failure = error.headline(),
        }
    }
    let mut back = tmux_on(tmux, &home.socket);
    back.args(["attach-session", "-t", &home.session]);
    if let Some(failure) = failure {
        // tmux expands the text as a format and as a time.
        let text = format!("agtmux: {failure}").replace('#', "##").replace('%', "%%");
        back.args([";", "display-message"]).arg(text.trim_end_matches(';'));
    }
    Err(CliError::io(&format!("start '{}'", tmux.program.display()), back.exec()))
}

/// Attaches to one agent until the client is detached. Returns the agent to which the person goes next.
async fn visit(
    daemon: &DaemonClient,
    tmux: &TmuxConfig,
    home: &TravelHome,
    guards: ActionGuards,
    records: &ClientRecords,
) -> CliResult<Option<String>> {
    let target = AttachTarget::plan(daemon, guards).await?;
    if target.outcome.report.ssh.is_some() {
        return Err(CliError::failed("the agent is on another host now"));
    }
    let pane = LocalAttach::new(&target, tmux);
    if same_file(&pane.socket, &home.socket) {
        return pane.attach().await.map(|()| None);
    }
    pane.check().await?;
    let mut client = pane.attach_command();
    let mut client = client.spawn().map_err(|error| CliError::io("start tmux", error))?;
    records.write(client.id(), &ClientRecord::of_traveller(std::process::id()))?;
    client.wait().map_err(|error| CliError::io("wait for tmux", error))?;
    Ok(records.take(client.id()).and_then(|record| record.next_agent))
}

fn tmux_on(tmux: &TmuxConfig, socket: &std::path::Path) -> Command {
    let mut command = Command::new(&tmux.program);
    command.arg("-S").arg(socket).env_remove("TMUX");
    command
}
