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
    after_help = "Splits the pane and starts a login shell in the new pane, with your usual startup files. If the pane or its \
    session already has a shared terminal, prints that one. agtmux sets two variables in the environment of \
    the tmux session: PI_MIRROR_PANE is the pane of the shared terminal. PI_LAST_RC has two numbers, such as \
    `7 0`: the seventh command of the shared terminal was the last one, and its exit code was 0.\n\n\
    Example:\n  agtmux mirror start --shell zsh"
)]
pub(crate) struct MirrorStartArgs {
    /// The pane to split, such as %3 [default: the pane of this command]
    #[arg(long, value_name = "PANE")]
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
    let for_pane = given.or_else(|| own.as_ref()?.for_pane.clone()).ok_or_else(outside_tmux)?;
    let cwd = Some(super::exec::directory(args.cwd)?);
    let socket = own.and_then(|own| own.socket);
    let request = MirrorStartRequest { socket, for_pane, shell: args.shell, cwd };
    let answer = DaemonClient::from_env()?.act("/v1/mirrors/start", &request).await.map_err(CliError::from)?;
    output::answer(&answer, args.json, |item: &MirrorItem| {
        vec![format!("pane={}", item.pane_id), format!("shell={}", item.shell), format!("status={}", item.status)]
    })
}
