//! `agtmux list`

mod empty;
mod panes;
mod sessions;
mod show;
mod windows;

use clap::{Args, Subcommand};

use crate::error::{CliError, Exit};

#[derive(Debug, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// `agtmux list` alone lists panes.
    #[command(flatten)]
    panes: panes::PanesArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Panes in which an agent runs, or all of them
    Panes(panes::PanesArgs),
    /// Windows, and what the agents in them amount to
    Windows(windows::WindowsArgs),
    /// Sessions, and what the agents in them amount to
    Sessions(sessions::SessionsArgs),
}

pub(crate) async fn run(args: ListArgs) -> Result<Exit, CliError> {
    match args.what {
        None => panes::run(args.panes).await,
        Some(What::Panes(args)) => panes::run(args).await,
        Some(What::Windows(args)) => windows::run(args).await,
        Some(What::Sessions(args)) => sessions::run(args).await,
    }
}
