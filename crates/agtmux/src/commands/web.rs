//! `agtmux web`: gives a browser access to the dashboard.

use agtmux_api::wire::{WebLink, WebLinkRequest};
use agtmux_client::{DaemonClient, parse};
use clap::Subcommand;

use crate::error::CliResult;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Print a one-time login link for a browser
    ///
    /// The link works once and expires after two minutes.
    Url {
        /// Give read-only access
        #[arg(long)]
        read_only: bool,
    },
}

pub(crate) async fn run(command: WebCommand) -> CliResult {
    let WebCommand::Url { read_only } = command;
    let answer = DaemonClient::from_env()?.act("/v1/web/link", &WebLinkRequest { read_only }).await?;
    output::line(&parse::<WebLink>(&answer)?.url)
}
