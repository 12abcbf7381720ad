//! `agtmux task`: work in the background, in a tmux session of its own, that reports back.

mod cleanup;
mod events;
mod exec;
mod input;
mod list;
mod log_writer;
mod logs;
mod run;
mod session_args;
mod session_name;
mod startup;
mod wait;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use crate::error::{CliError, CliExit};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Start a task in a window of its own, or again in the window that has its name
    Run(run::TaskRunArgs),
    /// The tasks of the session: which run, which have ended and how
    #[command(visible_alias = "ls")]
    List(list::TaskListArgs),
    /// What a task has written, from its first byte on
    Logs(logs::TaskLogsArgs),
    /// Type a text into a task, and Enter
    Input(input::TaskInputArgs),
    /// End a task: it is asked to, and made to if it does not. Its window stays
    Stop(cleanup::TaskStopArgs),
    /// Start a task again as it was started
    Restart(cleanup::TaskRestartArgs),
    /// Take away the windows of tasks that have ended
    PruneDead(cleanup::TaskPruneArgs),
    /// End all tasks of the session, and the session
    KillAll(cleanup::TaskKillAllArgs),
    /// Wait until a task has ended; for scripts
    Wait(wait::TaskWaitArgs),
    /// What happened to tasks: started, exited, notify, input, disappeared
    Events(events::TaskEventsArgs),
    /// When a harness session begins: clean up what earlier ones of the project have left, and name what still runs
    Startup(startup::TaskStartupArgs),
    /// Print the name of the session that holds a project's tasks
    SessionName(session_name::TaskSessionNameArgs),
}

pub(crate) async fn run(command: TaskCommand) -> Result<CliExit, CliError> {
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

/// What tmux starts in the panes of tasks and at the end of their pipes. It has to be there at once, so nothing else is read first.
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
