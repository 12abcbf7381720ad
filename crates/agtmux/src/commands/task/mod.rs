//! `agtmux task`: work in the background, in a tmux session of its own, that reports back.

mod end;
mod events;
mod exec;
mod input;
mod list;
mod logs;
mod name;
mod place;
mod reader;
mod run;
mod startup;
mod wait;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use crate::error::{CliError, Exit};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Start a task in a window of its own, or again in the window that has its name
    Run(run::RunArgs),
    /// The tasks of the session: which run, which have ended and how
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// What a task has written, from its first byte on
    Logs(logs::LogsArgs),
    /// Type a text into a task, and Enter
    Input(input::InputArgs),
    /// End a task: it is asked to, and made to if it does not. Its window stays
    Stop(end::StopArgs),
    /// Start a task again as it was started
    Restart(end::RestartArgs),
    /// Take away the windows of tasks that have ended
    PruneDead(end::CleanupArgs),
    /// End all tasks of the session, and the session
    KillAll(end::KillAllArgs),
    /// Wait until a task has ended; for scripts
    Wait(wait::WaitArgs),
    /// What happened to tasks: started, exited, notify, input, disappeared
    Events(events::EventsArgs),
    /// When a harness session begins: clean up what earlier ones of the project have left, and name what still runs
    Startup(startup::StartupArgs),
    /// Print the name of the session that holds a project's tasks
    SessionName(name::NameArgs),
}

pub(crate) async fn run(command: TaskCommand) -> Result<Exit, CliError> {
    match command {
        TaskCommand::Run(args) => run::run(args).await,
        TaskCommand::List(args) => list::run(args).await,
        TaskCommand::Logs(args) => logs::run(args).await,
        TaskCommand::Input(args) => input::run(args).await,
        TaskCommand::Stop(args) => end::stop(args).await,
        TaskCommand::Restart(args) => end::restart(args).await,
        TaskCommand::PruneDead(args) => end::prune_dead(args).await,
        TaskCommand::KillAll(args) => end::kill_all(args).await,
        TaskCommand::Wait(args) => wait::run(args).await,
        TaskCommand::Events(args) => events::run(args).await,
        TaskCommand::Startup(args) => startup::run(args).await,
        TaskCommand::SessionName(args) => name::run(&args),
    }
}

/// What tmux starts in the panes of tasks and at the end of their pipes. It has to be there at once, so nothing else is read first.
pub(crate) fn intercept(mut words: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let (_, command, spec) = (words.next()?, words.next()?, words.next());
    match (command.to_str()?, spec, words.next()) {
        ("task-exec", Some(spec), None) => Some(exec::run(Path::new(&spec))),
        ("task-log", Some(spec), None) => {
            reader::run(Path::new(&spec));
            Some(Exit::Ok.into())
        }
        _ => None,
    }
}

