//! `agtmux daemon`

mod find;
mod logs;
mod process;
mod restart;
mod run;
mod start;
mod status;
mod stop;

use clap::Subcommand;

use super::block_on;
use crate::error::{CliError, CliExit};

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run the daemon in the foreground; it logs to stderr
    Run(run::DaemonRunArgs),
    /// Start the daemon in the background
    Start,
    /// Stop the daemon and wait until it is gone
    Stop,
    /// Stop the daemon, of whichever version it is, and start this one
    Restart,
    /// Say whether the daemon runs and what it watches: exit 0 when it runs, 3 when not
    Status(status::DaemonStatusArgs),
    /// Print the end of the daemon's log
    Logs(logs::DaemonLogsArgs),
}

pub(crate) fn run(command: DaemonCommand) -> Result<CliExit, CliError> {
    match command {
        DaemonCommand::Run(args) => run::run(args),
        DaemonCommand::Start => block_on(start::run()),
        DaemonCommand::Stop => block_on(stop::run()),
        DaemonCommand::Restart => block_on(restart::run()),
        DaemonCommand::Status(args) => block_on(status::run(args)),
        DaemonCommand::Logs(args) => logs::run(args),
    }
}
