//! `agtmux list`

mod empty;
mod panes;
mod sessions;
mod show;
mod windows;

use clap::{Args, Subcommand};

use crate::error::{CliError, CliExit};

#[derive(Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    what: Option<ListCommand>,
    /// `agtmux list` alone lists panes.
    #[command(flatten)]
    panes: panes::PanesArgs,
}

#[derive(Debug, Subcommand)]
enum ListCommand {
    /// Panes in which an agent runs, or all of them
    Panes(panes::PanesArgs),
    /// Windows, and what the agents in them amount to
    Windows(windows::WindowsArgs),
    /// Sessions, and what the agents in them amount to
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
