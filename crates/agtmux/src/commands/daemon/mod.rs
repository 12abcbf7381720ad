//! `agtmux daemon`: starts, stops and inspects the daemon.

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
use crate::error::CliResult;

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run the daemon in the foreground and log to stderr
    Run(run::DaemonRunArgs),
    /// Start the daemon in the background
    Start,
    /// Stop the daemon and wait until it has exited
    Stop,
    /// Stop the running daemon and start this version
    Restart,
    /// Show whether the daemon is running and what it watches
    ///
    /// Exits with 0 if the daemon is running, and with 3 if not.
    Status(status::DaemonStatusArgs),
    /// Print the last lines of the daemon's log
    Logs(logs::DaemonLogsArgs),
}

pub(crate) fn run(command: DaemonCommand) -> CliResult {
    match command {
        DaemonCommand::Run(args) => run::run(args),
        DaemonCommand::Start => block_on(start::run()),
        DaemonCommand::Stop => block_on(stop::run()),
        DaemonCommand::Restart => block_on(restart::run()),
        DaemonCommand::Status(args) => block_on(status::run(args)),
        DaemonCommand::Logs(args) => logs::run(args),
    }
}
