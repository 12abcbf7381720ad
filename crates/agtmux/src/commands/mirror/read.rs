//! `agtmux mirror read`: prints the last lines of the shared terminal.

use agtmux_api::wire::{MirrorScreen, MirrorScreenQuery};
use agtmux_client::DaemonClient;
use clap::Args;

use super::terminal_args::TerminalArgs;
use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MirrorReadArgs {
    #[command(flatten)]
    terminal: TerminalArgs,
    /// Print at most the last N lines
    #[arg(long, short = 'n', value_name = "N", default_value = "200")]
    lines: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MirrorReadArgs) -> CliResult {
    let terminal = args.terminal.resolve()?;
    let query = MirrorScreenQuery {
        socket: terminal.socket,
        pane: terminal.pane,
        for_pane: terminal.for_pane,
        lines: Some(args.lines),
    };
    let answer = DaemonClient::from_env()?.get_bytes("/v1/mirrors/screen", &query).await?;
    output::answer(&answer, args.json, |screen: &MirrorScreen| screen.lines.clone())
}
