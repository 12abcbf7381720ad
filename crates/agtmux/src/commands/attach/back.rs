//! `agtmux back`: returns to the pane from which agtmux moved the tmux client.

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_tmux::TmuxError;
use clap::Args;

use super::places::ClientRecords;
use super::{CallingClient, ClientArgs};
use crate::error::{CliError, CliResult};

#[derive(Debug, Args)]
#[command(
    after_help = "Panes that are gone are skipped. If agtmux brought your terminal from another tmux server, the last step returns \
    there.\n\nExamples:\n  agtmux back\n  tmux bind-key G run-shell -b \"agtmux back --client '#{client_tty}'\""
)]
pub(crate) struct BackArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: BackArgs) -> CliResult {
    let paths = Paths::from_env()?;
    let tmux = Config::load(&paths.config)?.tmux;
    let Some(client) = args.client.find(&tmux).await? else {
        return Err(CliError::failed("there is no tmux client to move").because("this command runs outside tmux"));
    };
    let moved = go_back(&ClientRecords::new(&paths), &client).await;
    client.report(&args.client, moved).await
}

async fn go_back(records: &ClientRecords, client: &CallingClient) -> CliResult {
    let mut record = records.read(&client.view);
    while let Some(place) = record.pop() {
        if place == client.view.place() {
            continue;
        }
        match client.server.switch_client(&client.view.tty, place).await {
            Ok(()) => return records.write(client.view.client.pid, &record),
            // The pane is gone.
            Err(TmuxError::Failed(_)) => {}
            Err(error) => return Err(CliError::io("switch the tmux client", error)),
        }
    }
    if record.travels() {
        let detached = client.server.detach_client(&client.view.tty, None).await;
        return detached.map_err(|error| CliError::io("return to the other tmux server", error));
    }
    records.write(client.view.client.pid, &record)?;
    Err(CliError::failed("agtmux has not moved this client from another pane"))
}
