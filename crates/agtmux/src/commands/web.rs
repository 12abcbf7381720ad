//! `agtmux web`: gives a browser access to the dashboard.

use agtmux_api::wire::{WebLink, WebLinkRequest};
use agtmux_client::{DaemonClient, parse};
use clap::{Args, Subcommand};

use crate::error::CliResult;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Print a one-time login link for a browser
    ///
    /// The link works once and expires after two minutes.
    Url(WebUrlArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WebUrlArgs {
    /// Give read-only access
    #[arg(long)]
    read_only: bool,
}

pub(crate) async fn run(command: WebCommand) -> CliResult {
    let WebCommand::Url(args) = command;
    let request = WebLinkRequest { read_only: args.read_only };
    let link: WebLink = parse(&DaemonClient::from_env()?.act("/v1/web/link", &request).await?)?;
    output::line(link.url.as_bytes())
}
