//! `agtmux list`: lists panes, windows or sessions.

mod empty;
mod panes;
mod sessions;
mod show;
mod windows;

use clap::{Args, Subcommand};

use crate::error::{CliError, CliExit};

#[derive(Debug, Default, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  agtmux list --needs-action\n  agtmux list sessions --agent-summary"
)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    what: Option<ListCommand>,
    /// Used without a subcommand.
    #[command(flatten)]
    panes: panes::PanesArgs,
}

#[derive(Debug, Subcommand)]
enum ListCommand {
    /// List the panes in which an agent runs, or all panes
    Panes(panes::PanesArgs),
    /// List windows and the number of their panes and agents
    Windows(windows::WindowsArgs),
    /// List sessions and the number of their panes and agents
    Sessions(sessions::SessionsArgs),
}

pub(crate) async fn run(args: ListArgs) -> Result<CliExit, CliError> {
    match args.what {
        None => panes::run(args.panes).await,
        Some(ListCommand::Panes(args)) => panes::run(args).await,
        Some(ListCommand::Windows(args)) => windows::run(args).await,
        Some(ListCommand::Sessions(args)) => sessions::run(args).await,
    }
}
