//! `agtmux task`: background tasks in a tmux session, with events.

mod cleanup;
mod events;
mod exec;
mod input;
mod list;
mod log_writer;
mod logs;
mod run;
pub(crate) mod session_args;
mod session_name;
mod startup;
pub(crate) mod wait;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
pub(crate) use run::start_tmux_server;
pub(crate) use session_args::{named_session, socket as tmux_socket};

use crate::error::{CliExit, CliResult};
pub(crate) use session_args::unnamed_session;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Start a task in its own window
    ///
    /// Replaces a task with the same name if that task has ended. With --replace, also replaces a task that is still
    /// running.
    Run(run::TaskRunArgs),
    /// List the tasks of the session with their state and exit code
    #[command(visible_alias = "ls")]
    List(list::TaskListArgs),
    /// Print the output of a task
    Logs(logs::TaskLogsArgs),
    /// Type text into a task and press Enter
    Input(input::TaskInputArgs),
    /// Stop a task and keep its window
    ///
    /// Sends SIGTERM, and SIGKILL if the task is still running after 5 s.
    Stop(cleanup::TaskStopArgs),
    /// Restart a task with its original command and directory
    Restart(cleanup::TaskRestartArgs),
    /// Remove the windows of tasks that have ended
    PruneDead(cleanup::TaskPruneArgs),
    /// Kill all tasks of the session and the session itself
    KillAll(cleanup::TaskKillAllArgs),
    /// Wait until a task has ended, for use in scripts
    Wait(wait::TaskWaitArgs),
    /// Print the events of tasks
    ///
    /// The events are started, exited, notify (the task rang the bell), input (the task asks for input) and disappeared
    /// (its window is gone).
    Events(events::TaskEventsArgs),
    /// Clean up old task sessions of a project; for programs that start agents
    Startup(startup::TaskStartupArgs),
    /// Print a session name for the tasks of one agent, for use with --session
    SessionName(session_name::TaskSessionNameArgs),
}

pub(crate) async fn run(command: TaskCommand) -> CliResult {
    match command {
        TaskCommand::Run(args) => run::run(args).await,
        TaskCommand::List(args) => list::run(args).await,
        TaskCommand::Logs(args) => logs::run(args).await,
        TaskCommand::Input(args) => input::run(args).await,
        TaskCommand::Stop(args) => cleanup::stop(args).await,
        TaskCommand::Restart(args) => cleanup::restart(args).await,
        TaskCommand::PruneDead(args) => cleanup::prune_dead(args).await,
        TaskCommand::KillAll(args) => cleanup::kill_all(args).await,
        TaskCommand::Wait(args) => wait::run(args).await,
        TaskCommand::Events(args) => events::run(args).await,
        TaskCommand::Startup(args) => startup::run(args).await,
        TaskCommand::SessionName(args) => session_name::run(&args),
    }
}

/// Handles `task-exec`, which tmux starts in the pane of a task, and `task-log`, which tmux starts to read the output
/// of the pane from a pipe. Runs before clap parses the command line, to start as fast as possible.
pub(crate) fn intercept(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let (_, command, spec) = (words.next()?, words.next()?, words.next());
    match (command.to_str()?, spec, words.next()) {
        ("task-exec", Some(spec), None) => Some(exec::run(Path::new(&spec))),
        ("task-log", Some(spec), None) => {
            log_writer::run(Path::new(&spec));
            Some(CliExit::Ok.into())
        }
        _ => None,
    }
}
