//! The commands of `agtmux`, one per module.

pub(crate) mod adapters;
pub(crate) mod ask;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod broadcast;
pub(crate) mod collect;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod filters;
mod fleet_follow;
pub(crate) mod guards;
pub(crate) mod handoff;
pub(crate) mod help_topics;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod inbox;
pub(crate) mod interface;
pub(crate) mod kill;
pub(crate) mod last;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod menubar;
pub(crate) mod mirror;
pub(crate) mod new;
pub(crate) mod notify;
pub(crate) mod pick;
pub(crate) mod rename;
pub(crate) mod replay;
pub(crate) mod respond;
pub(crate) mod resume;
mod resume_all;
pub(crate) mod run;
pub(crate) mod seen;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod sidebar;
pub(crate) mod sort;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod task;
pub(crate) mod text_args;
pub(crate) mod view_output;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod web;
mod welcome;
pub(crate) mod worktree;

use std::future::Future;

use crate::cli::CliCommand;
use crate::error::{CliError, CliResult};

pub(crate) fn run(command: Option<CliCommand>) -> CliResult {
    match command {
        None if interface::is_possible() => block_on(interface::run(false)),
        None => block_on(list::run(list::ListArgs::default())),
        Some(CliCommand::Inbox(args)) => block_on(inbox::run(args)),
        Some(CliCommand::List(args)) => block_on(list::run(args)),
        Some(CliCommand::Watch(args)) => block_on(async { watch::run(args).await?.into_result() }),
        Some(CliCommand::Status(args)) => block_on(status::run(args)),
        Some(CliCommand::Menubar(args)) => block_on(menubar::run(args)),
        Some(CliCommand::Sidebar(args)) => block_on(sidebar::run(args)),
        Some(CliCommand::Send(args)) => block_on(send::run(args)),
        Some(CliCommand::Ask(args)) => block_on(ask::run(args)),
        Some(CliCommand::Last(args)) => block_on(last::run(args)),
        Some(CliCommand::Respond(args)) => block_on(respond::run(args)),
        Some(CliCommand::Attach(args)) => block_on(attach::run(args)),
        Some(CliCommand::Next(args)) => block_on(attach::next(args)),
        Some(CliCommand::Back(args)) => block_on(attach::back(args)),
        Some(CliCommand::ViewOutput(args)) => block_on(view_output::run(args)),
        Some(CliCommand::Wait(args)) => block_on(wait::run(args)),
        Some(CliCommand::Kill(args)) => block_on(kill::run(args)),
        Some(CliCommand::Seen(args)) => block_on(seen::run(args)),
        Some(CliCommand::Resume(args)) => block_on(resume::run(args)),
        Some(CliCommand::New(args)) => block_on(new::run(args)),
        Some(CliCommand::Worktree(command)) => block_on(worktree::run(command)),
        Some(CliCommand::Handoff(args)) => block_on(handoff::run(args)),
        Some(CliCommand::Broadcast(args)) => block_on(broadcast::run(args)),
        Some(CliCommand::Diff(args)) => block_on(diff::run(args)),
        Some(CliCommand::Rename(args)) => block_on(rename::run(args)),
        Some(CliCommand::Audit(args)) => block_on(audit::run(args)),
        Some(CliCommand::Notify(command)) => block_on(notify::run(command)),
        Some(CliCommand::Task(command)) => block_on(task::run(command)),
        Some(CliCommand::Mirror(command)) => block_on(mirror::run(command)),
        Some(CliCommand::Mcp(args)) => block_on(mcp::run(args)),
        Some(CliCommand::Emit(args)) => block_on(emit::run(args)),
        Some(CliCommand::Explain(args)) => explain::run(args),
        Some(CliCommand::Adapters(args)) => adapters::run(args),
        Some(CliCommand::History(args)) => block_on(history::run(args)),
        Some(CliCommand::Replay(args)) => replay::run(&args),
        Some(CliCommand::Daemon(command)) => daemon::run(command),
        Some(CliCommand::Target(command)) => block_on(target::run(command)),
        Some(CliCommand::Collect { .. }) => block_on(collect::run()),
        Some(CliCommand::Web(args)) => block_on(web::run(args)),
        Some(CliCommand::Config(command)) => config::run(command),
        Some(CliCommand::Setup(args)) => setup::run(&args),
        Some(CliCommand::Run(args)) => run::run(&args),
        // `hook::intercept` runs this command before clap parses the command line.
        Some(CliCommand::Hook(_)) => Ok(()),
        Some(CliCommand::Doctor(args)) => block_on(doctor::run(args)),
        Some(CliCommand::Completions(args)) => completions::run(&args),
        Some(CliCommand::Man(args)) => man::run(&args),
        Some(CliCommand::Demo) => block_on(demo::run()),
        Some(CliCommand::Welcome) => block_on(welcome::run()),
    }
}

/// Runs the command on one thread, which is enough for a client and starts fastest.
pub(crate) fn block_on(command: impl Future<Output = CliResult>) -> CliResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CliError::io("start the async runtime", error))?.block_on(command)
}
