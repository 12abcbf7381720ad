//! `agtmux mirror stop`: closes the shared terminal.

use agtmux_api::wire::MirrorItem;
use agtmux_client::DaemonClient;
use clap::Args;

use super::terminal_args::TerminalArgs;
use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MirrorStopArgs {
    #[command(flatten)]
    terminal: TerminalArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: MirrorStopArgs) -> CliResult {
    let terminal = args.terminal.resolve()?;
    let answer = DaemonClient::from_env()?.act("/v1/mirrors/stop", &terminal).await?;
    output::answer(&answer, args.json, |item: &MirrorItem| match item.adopted {
        true => vec![format!("released {}; the pane stays open", item.pane_id)],
        false => vec![format!("closed {}", item.pane_id)],
    })
}
