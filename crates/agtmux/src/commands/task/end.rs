//! `agtmux task stop`, `restart`, `prune-dead` and `kill-all`: only what agtmux has made is touched.

use std::io::{BufRead, IsTerminal, Write};

use agtmux_api::wire::{TaskCleanup, TaskEnded, TaskPlace, TaskRestart, TaskStarted, TaskStop};
use agtmux_core::sanitize;
use clap::Args;

use super::place::{KeeperArgs, PlaceArgs};
use super::run::told;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// Take its window away as well, at once
    #[arg(long)]
    window: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    keeper: KeeperArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillAllArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn stop(args: StopArgs) -> Result<Exit, CliError> {
    let TaskPlace { session, socket } = args.place.place()?;
    let action = TaskStop { session, socket, task: args.task, window: args.window };
    done("/v1/tasks/stop", &action, args.json, "stopped").await
}

pub(crate) async fn restart(args: RestartArgs) -> Result<Exit, CliError> {
    let TaskPlace { session, socket } = args.place.place()?;
    let action = TaskRestart { session, socket, task: args.task, keeper: args.keeper.pid()? };
    let started: TaskStarted = parse(&Daemon::from_env()?.act("/v1/tasks/restart", &action).await?)?;
    told(&started, args.json)?;
    Ok(Exit::Ok)
}

pub(crate) async fn prune_dead(args: CleanupArgs) -> Result<Exit, CliError> {
    let TaskPlace { session, socket } = args.place.place()?;
    done("/v1/tasks/prune-dead", &TaskCleanup { session, socket }, args.json, "removed").await
}

pub(crate) async fn kill_all(args: KillAllArgs) -> Result<Exit, CliError> {
    let TaskPlace { session, socket } = args.place.place()?;
    if !args.yes && !confirmed(&session)? {
        return Ok(Exit::Failed);
    }
    done("/v1/tasks/kill-all", &TaskCleanup { session, socket }, args.json, "killed").await
}

async fn done(path: &str, action: &impl serde::Serialize, json: bool, what: &str) -> Result<Exit, CliError> {
    let answer = Daemon::from_env()?.act(path, action).await?;
    if json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let ended: TaskEnded = parse(&answer)?;
    if !ended.exists {
        Message::new(format!("there is no session '{}', so there is nothing to do", ended.session)).tell();
        return Ok(Exit::Ok);
    }
    let line = |task: &agtmux_api::wire::EndedTask| {
        let how = match (task.exit_code, &task.signal) {
            (Some(code), _) => format!(" (exit code {code})"),
            (None, Some(signal)) => format!(" ({signal})"),
            (None, None) => String::new(),
        };
        format!("{what} {} {}{how}", task.window_id, sanitize::for_terminal(&task.task))
    };
    output::lines(&ended.tasks.iter().map(line).collect::<Vec<_>>())?;
    Ok(Exit::Ok)
}

fn confirmed(session: &str) -> Result<bool, CliError> {
    let asked = format!("end all tasks of '{}' and the session?", sanitize::for_terminal(session));
    if !std::io::stdin().is_terminal() {
        let message = Message::new(asked).because("nobody is there to confirm it").hint("agtmux task kill-all --yes");
        return Err(CliError::new(Exit::Usage, message));
    }
    eprint!("{asked} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| CliError::io("read your answer", error))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
