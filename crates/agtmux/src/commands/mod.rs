//! One command, one file.

pub(crate) mod adapters;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod collect;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod filters;
pub(crate) mod guards;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod kill;
pub(crate) mod list;
pub(crate) mod pick;
pub(crate) mod replay;
pub(crate) mod respond;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod task;
pub(crate) mod view_output;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod web;
mod welcome;

use std::future::Future;

use crate::cli::Command;
use crate::error::{CliError, Exit};

pub(crate) fn run(command: Option<Command>) -> Result<Exit, CliError> {
    match command {
        None => block_on(list::run(list::ListArgs::default())),
        Some(Command::List(args)) => block_on(list::run(args)),
        Some(Command::Watch(args)) => block_on(watch::run(args)),
        Some(Command::Status(args)) => block_on(status::run(args)),
        Some(Command::Send(args)) => block_on(send::run(args)),
        Some(Command::Respond(args)) => block_on(respond::run(args)),
        Some(Command::Attach(args)) => block_on(attach::run(args)),
        Some(Command::ViewOutput(args)) => block_on(view_output::run(args)),
        Some(Command::Wait(args)) => block_on(wait::run(args)),
        Some(Command::Kill(args)) => block_on(kill::run(args)),
        Some(Command::Resume(args)) => block_on(resume::run(args)),
        Some(Command::Audit(args)) => block_on(audit::run(args)),
        Some(Command::Task(command)) => block_on(task::run(command)),
        Some(Command::Emit(args)) => block_on(emit::run(args)),
        Some(Command::Explain(args)) => explain::run(args),
        Some(Command::Adapters(args)) => adapters::run(args),
        Some(Command::History(args)) => block_on(history::run(args)),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Daemon(command)) => daemon::run(command),
        Some(Command::Target(command)) => block_on(target::run(command)),
        Some(Command::Collect(args)) => block_on(collect::run(args)),
        Some(Command::Web(command)) => block_on(web::run(command)),
        Some(Command::Config(command)) => config::run(command),
        Some(Command::Setup(args)) => setup::run(&args),
        Some(Command::Run(args)) => run::run(&args),
        // Taken before anything else is read, except for its help.
        Some(Command::Hook(_)) => Ok(Exit::Ok),
        Some(Command::Demo) => block_on(demo::run()),
        Some(Command::Welcome) => block_on(welcome::run()),
    }
}

/// One thread is enough for a client, and the quickest to start.
pub(crate) fn block_on(command: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CliError::io("start", error))?.block_on(command)
}
