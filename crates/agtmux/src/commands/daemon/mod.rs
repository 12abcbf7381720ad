//! `agtmux daemon`: starts, stops and inspects the daemon.

mod find;
mod lifecycle;
mod logs;
mod process;
mod run;
mod status;

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
    /// Check the settings, stop the running daemon and start a daemon of this agtmux version
    Restart,
    /// Show whether the daemon is running and what it watches
    ///
    /// Exits with 0 if the daemon is running, and with 3 if not.
    Status {
        /// Print the daemon's response as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the last lines of the daemon's log
    Logs(logs::DaemonLogsArgs),
}

pub(crate) fn run(command: DaemonCommand) -> CliResult {
    match command {
        DaemonCommand::Run(args) => run::run(args),
        DaemonCommand::Start => block_on(lifecycle::start()),
        DaemonCommand::Stop => block_on(lifecycle::stop()),
        DaemonCommand::Restart => block_on(lifecycle::restart()),
        DaemonCommand::Status { json } => block_on(status::run(json)),
        DaemonCommand::Logs(args) => logs::run(args),
    }
}
