//! `agtmux mirror start`: opens a shared terminal.

use std::path::PathBuf;

use agtmux_api::wire::{MirrorItem, MirrorStartRequest};
use agtmux_client::DaemonClient;
use clap::Args;

use super::terminal_args::{checked_pane, outside_tmux, own_pane};
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Splits the pane of this command and starts a login shell in the new pane, with your usual startup files. If the pane or its \
    session already has a shared terminal, prints that one. agtmux sets two variables in the environment of \
    the tmux session: PI_MIRROR_PANE is the pane of the shared terminal. PI_LAST_RC has two numbers, such as \
    `7 0`: the seventh command of the shared terminal was the last one, and its exit code was 0.\n\n\
    With --pane, agtmux types one line into the shell of that pane. The line loads the hooks of agtmux and removes itself from the \
    screen. Lines that start with `note=` name the changes that stay in that shell until it ends. Agents may not use --pane.\n\n\
    Examples:\n  agtmux mirror start --shell zsh\n  agtmux mirror start --pane %3"
)]
pub(crate) struct MirrorStartArgs {
    /// Use the shell of this pane, such as %3, instead of a new pane. It must show its prompt
    #[arg(long, value_name = "PANE", conflicts_with_all = ["shell", "cwd"])]
    pane: Option<String>,
    /// bash, zsh, fish, a POSIX shell such as dash, or the path of one of them [default: the shell that tmux starts]
    #[arg(long, value_name = "SHELL")]
    shell: Option<String>,
    /// The working directory of the shell [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MirrorStartArgs) -> CliResult {
    let own = own_pane();
    let given = args.pane.as_deref().map(checked_pane).transpose()?;
    let own_pane = own.as_ref().and_then(|own| own.for_pane.clone());
    let for_pane = own_pane.clone().or_else(|| given.clone()).ok_or_else(outside_tmux)?;
    // The pane of this command runs this command, so its shell cannot be adopted.
    let pane = given.filter(|given| own_pane.as_ref() != Some(given));
    let cwd = Some(super::exec::directory(args.cwd)?);
    let socket = own.and_then(|own| own.socket);
    let request = MirrorStartRequest { socket, for_pane, pane, shell: args.shell, cwd };
    let answer = DaemonClient::from_env()?.act("/v1/mirrors/start", &request).await.map_err(CliError::from)?;
    output::answer(&answer, args.json, |item: &MirrorItem| {
        let facts = [("pane", item.pane_id.to_string()), ("shell", item.shell.to_string())];
        let facts = facts.into_iter().chain([("status", item.status.to_string())]);
        let notes = item.notes.iter().map(|note| ("note", note.clone()));
        facts.chain(notes).map(|(name, value)| format!("{name}={value}")).collect()
    })
}
