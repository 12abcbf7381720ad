//! `agtmux web`: the way in for a browser.

use agtmux_api::wire::{WebLink, WebLinkRequest};
use clap::{Args, Subcommand};

use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Print a link that lets one browser in, once, within two minutes
    Url(WebUrlArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WebUrlArgs {
    /// For one who may look and not touch
    #[arg(long)]
    read_only: bool,
}

pub(crate) async fn run(command: WebCommand) -> Result<CliExit, CliError> {
    let WebCommand::Url(args) = command;
    let request = WebLinkRequest { read_only: args.read_only };
    let link: WebLink = parse(&DaemonClient::from_env()?.act("/v1/web/link", &request).await?)?;
    output::line(link.url.as_bytes())?;
    Ok(CliExit::Ok)
}
