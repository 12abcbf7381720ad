//! `agtmux mirror`: a terminal that a person and an agent share.

mod activity;
mod exec;
mod read;
mod reader;
mod shell;
mod start;
mod status;
mod stop;
mod terminal_args;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use crate::error::{CliExit, CliResult};

#[derive(Debug, Subcommand)]
pub(crate) enum MirrorSubcommand {
    /// Open a shared terminal beside this pane, unless one exists, and print its pane id
    Start(start::MirrorStartArgs),
    /// Run a command in the shared terminal, print the output and exit with the command's code
    Exec(exec::MirrorExecArgs),
    /// Print the last lines of the shared terminal
    Read(read::MirrorReadArgs),
    /// Print the commands that you ran in the shared terminal
    Activity(activity::MirrorActivityArgs),
    /// List the shared terminals and the command that runs in each
    Status(status::MirrorStatusArgs),
    /// Stop sharing the terminal
    ///
    /// Closes the pane, unless `mirror start --pane` chose it.
    Stop(stop::MirrorStopArgs),
}

pub(crate) async fn run(command: MirrorSubcommand) -> CliResult {
    match command {
        MirrorSubcommand::Start(args) => start::run(args).await,
        MirrorSubcommand::Exec(args) => exec::run(args).await,
        MirrorSubcommand::Read(args) => read::run(args).await,
        MirrorSubcommand::Activity(args) => activity::run(args).await,
        MirrorSubcommand::Status(args) => status::run(args).await,
        MirrorSubcommand::Stop(args) => stop::run(args).await,
    }
}

/// Handles `mirror-shell`, which tmux starts in the pane of a shared terminal, and `mirror-log`, which tmux starts to
/// read the output of the pane from a pipe. Runs before clap parses the command line, to start as fast as possible.
pub(crate) fn intercept(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let (_, command, dir) = (words.next()?, words.next()?, words.next());
    match (command.to_str()?, dir, words.next()) {
        ("mirror-shell", Some(dir), None) => Some(shell::run(Path::new(&dir))),
        ("mirror-log", Some(dir), None) => {
            reader::run(Path::new(&dir));
            Some(CliExit::Ok.into())
        }
        _ => None,
    }
}
