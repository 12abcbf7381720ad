//! `agtmux task stop`, `restart`, `prune-dead` and `kill-all`. These commands change only sessions and windows that
//! agtmux created.

use agtmux_api::wire::{
    TaskCleanupRequest, TaskEndReport, TaskRestartRequest, TaskSessionQuery, TaskStarted, TaskStopRequest,
};
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use super::run::print_started;
use super::session_args::{SessionOwnerArgs, TaskSessionArgs};
use crate::error::CliResult;
use crate::message::CliMessage;
use crate::{input, output};

#[derive(Debug, Args)]
pub(crate) struct TaskStopArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by name or window id
    task: String,
    /// Close the task's window at once instead of sending SIGTERM
    #[arg(long)]
    window: bool,
    /// Report that the user closed the window, also if an agent runs this command
    #[arg(long, requires = "window")]
    by_user: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskRestartArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    #[command(flatten)]
    owner: SessionOwnerArgs,
    /// The task, by name or window id
    task: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskPruneArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskKillAllArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn stop(args: TaskStopArgs) -> CliResult {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    let action = TaskStopRequest { session, socket, task: args.task, window: args.window, by_user: args.by_user };
    run_cleanup("/v1/tasks/stop", &action, args.json, "stopped").await
}

pub(crate) async fn restart(args: TaskRestartArgs) -> CliResult {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    let action = TaskRestartRequest { session, socket, task: args.task, owner: args.owner.pid()? };
    let started: TaskStarted = parse(&DaemonClient::from_env()?.act("/v1/tasks/restart", &action).await?)?;
    print_started(&started, args.json)
}

pub(crate) async fn prune_dead(args: TaskPruneArgs) -> CliResult {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    run_cleanup("/v1/tasks/prune-dead", &TaskCleanupRequest { session, socket }, args.json, "removed").await
}

pub(crate) async fn kill_all(args: TaskKillAllArgs) -> CliResult {
    let TaskSessionQuery { session, socket } = args.session.resolve()?;
    if !args.yes {
        let question = format!("kill all tasks of '{session}' and the session?");
        input::require_confirmation(&question, "agtmux task kill-all --yes")?;
    }
    run_cleanup("/v1/tasks/kill-all", &TaskCleanupRequest { session, socket }, args.json, "killed").await
}

async fn run_cleanup(path: &str, action: &impl serde::Serialize, json: bool, what: &str) -> CliResult {
    let answer = DaemonClient::from_env()?.act(path, action).await?;
    if json {
        return output::json_answer(&answer);
    }
    let ended: TaskEndReport = parse(&answer)?;
    if !ended.exists {
        CliMessage::new(format!("nothing to do: there is no session '{}'", ended.session)).print_stderr();
        return Ok(());
    }
    let line = |task: &agtmux_api::wire::EndedTask| {
        let how = match (task.exit_code, &task.signal) {
            (Some(code), _) => format!(" (exit code {code})"),
            (None, Some(signal)) => format!(" ({signal})"),
            (None, None) => String::new(),
        };
        format!("{what} {} {}{how}", task.window_id, task.task)
    };
    output::lines(ended.tasks.iter().map(line))
}
