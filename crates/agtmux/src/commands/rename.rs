//! `agtmux rename`: gives an agent a name.

use agtmux_api::wire::{ActionOutcome, RenameAction, RenameReport};
use agtmux_client::DaemonClient;
use clap::Args;

use super::guards::GuardArgs;
use crate::error::CliResult;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The name is unique on its host. It stays with the agent when `agtmux resume` starts the agent again.\n\n\
    Example:\n  agtmux rename %12 reviewer"
)]
#[command(mut_arg("reference", |arg| arg.required(true).index(1)))]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// The new name: letters, digits, '-', '_' and '.'
    #[arg(value_name = "NAME", index = 2)]
    name: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<RenameArgs>) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let answer = daemon.act("/v1/actions/rename", &RenameAction { guards, name: args.name.clone() }).await?;
    output::answer(&answer, args.json, |done: &ActionOutcome<RenameReport>| {
        let before = done.report.previous.as_ref().map(|name| format!(" (before: {name})")).unwrap_or_default();
        vec![format!(
            "the agent in {} on {} is now named {}{before}",
            done.pane_id,
            done.server_label(),
            done.report.name
        )]
    })
}
