//! `agtmux web`: gives browsers access to the dashboard.

mod open;
mod qr;
mod sessions;

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{WebLink, WebLinkRequest, WebLoginList};
use agtmux_client::{DaemonClient, parse};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WebArgs {
    #[command(subcommand)]
    command: Option<WebCommand>,
    #[command(flatten)]
    open: WebOpenArgs,
}

#[derive(Debug, Args)]
struct WebOpenArgs {
    /// Close the port and end the login after this time, such as 8h. Default: when the daemon stops
    #[arg(long = "for", value_name = "TIME")]
    time: Option<ConfigDuration>,
    /// Give read-only access
    #[arg(long)]
    read_only: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum WebCommand {
    /// Print a one-time login link for a port that is already open
    ///
    /// The link works once and expires after two minutes.
    Url {
        /// Give read-only access
        #[arg(long)]
        read_only: bool,
    },
    /// List the browsers that are logged in
    Sessions {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// End the login of one browser
    Revoke {
        /// The id of the login; `agtmux web sessions` lists the ids
        id: String,
    },
    /// Close the port and end all logins
    ///
    /// A port that `web.listen` opens is closed until the daemon restarts.
    Stop,
}

pub(crate) async fn run(args: WebArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    match args.command {
        None => open::run(&daemon, args.open).await,
        Some(WebCommand::Url { read_only }) => {
            let answer = daemon.act("/v1/web/link", &WebLinkRequest { read_only }).await?;
            output::line(&parse::<WebLink>(&answer)?.url)
        }
        Some(WebCommand::Sessions { json }) => sessions::list(&daemon, json).await,
        Some(WebCommand::Revoke { id }) => sessions::revoke(&daemon, id).await,
        Some(WebCommand::Stop) => {
            let answer = daemon.act("/v1/web/stop", &json!({})).await?;
            let ended = parse::<WebLoginList>(&answer)?.items.len();
            output::line(&format!("the web port is closed; {ended} logins ended"))
        }
    }
}
