//! `agtmux task wait`: until a task has ended. Nothing is asked again and again: the daemon tells.

use std::time::Duration;

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery, TaskList};
use agtmux_core::task::{TaskEventKind, TaskExit, TaskSnapshot};
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::events::{TaskStreamSignal, follow};
use super::session_args::TaskSessionArgs;
use crate::connect::DaemonClient;
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 when the task has ended with code 0, else with 1: also when the time is up, or its window is gone."
)]
pub(crate) struct TaskWaitArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// How long at the most, as 90s or 10m; for ever by default
    #[arg(long, value_name = "DURATION")]
    timeout: Option<ConfigDuration>,
    /// Print what became of it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) enum TaskWaitOutcome {
    Ended(Box<TaskEvent>),
    TimedOut,
    /// Nothing more is told of it: it was started again, or taken away by us.
    Removed,
    Interrupted(CliExit),
}

pub(crate) async fn run(args: TaskWaitArgs) -> Result<CliExit, CliError> {
    let (place, daemon) = (args.session.resolve()?, DaemonClient::from_env()?);
    // Before it is looked: an end between the two is told.
    let seen: TaskEvents =
        daemon.get("/v1/tasks/events", &TaskEventsQuery { limit: Some(1), ..Default::default() }).await?;
    let list: TaskList = daemon.get("/v1/tasks", &place).await?;
    let named = |task: &&TaskSnapshot| task.window_name == args.task || task.window_id.to_string() == args.task;
    let Some(task) = list.tasks.iter().find(named) else {
        let message = CliMessage::new(format!("there is no task '{}' in '{}'", args.task, place.session));
        return Err(CliError::failed(message.hint("agtmux task list")));
    };
    // tmux shows a task dead before it knows how it ended, but that will be told.
    if task.dead && (task.exit() != TaskExit::UNKNOWN || task.run.is_none()) {
        return print_ended(task, args.json);
    }
    let query = TaskEventsQuery {
        session: Some(place.session.clone()),
        socket: place.socket.clone(),
        // Its window may get another name meanwhile.
        task: Some(task.window_name.clone()).filter(|_| task.run.is_none()),
        run_id: task.run.clone().map(String::from),
        // The end of a launch is told once, and may have been before tmux shows it.
        after: Some(if task.run.is_some() { 0 } else { seen.seq }),
        limit: None,
    };
    match wait_until_end(&daemon, query, args.timeout.map(|span| span.0), &mut QuitSignals::new()?).await? {
        TaskWaitOutcome::Interrupted(exit) => Ok(exit),
        TaskWaitOutcome::Ended(event) => {
            let line = if args.json { json!(event).to_string() } else { event.message.clone() };
            output::line(line.as_bytes())?;
            Ok(if event.exit_code == Some(0) { CliExit::Ok } else { CliExit::Failed })
        }
        // It had ended before anybody was there to tell of it.
        TaskWaitOutcome::Removed if task.dead => print_ended(task, args.json),
        TaskWaitOutcome::Removed => Err(removed_error(&args.task)),
        TaskWaitOutcome::TimedOut => {
            let message = CliMessage::new(format!("'{}' still runs", args.task)).because("the time is up");
            Err(CliError::failed(message.hint(format!("agtmux task logs {} -f", args.task))))
        }
    }
}

fn print_ended(task: &TaskSnapshot, json: bool) -> Result<CliExit, CliError> {
    let end = json!({"type": "exited", "task": task.window_name, "window_id": task.window_id,
        "exit_code": task.exit_code, "signal": task.signal});
    let line = if json { end.to_string() } else { format!("{} exited with {}", task.window_name, task.exit()) };
    output::line(line.as_bytes())?;
    Ok(if task.exit().is_success() { CliExit::Ok } else { CliExit::Failed })
}

pub(super) fn removed_error(task: &str) -> CliError {
    let message = CliMessage::new(format!("'{task}' was taken away, or started again, before it had ended by itself"));
    CliError::failed(message.hint("agtmux task list"))
}

pub(super) async fn wait_until_end(
    daemon: &DaemonClient,
    query: TaskEventsQuery,
    patience: Option<Duration>,
    quit: &mut QuitSignals,
) -> Result<TaskWaitOutcome, CliError> {
    let until = Instant::now() + patience.unwrap_or(NO_TIMEOUT);
    let mut events = follow(daemon.clone(), query);
    loop {
        tokio::select! {
            exit = quit.received() => return Ok(TaskWaitOutcome::Interrupted(exit)),
            () = sleep_until(until) => return Ok(TaskWaitOutcome::TimedOut),
            signal = events.recv() => match signal {
                Some(TaskStreamSignal::Event(event)) => {
                    if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                        return Ok(TaskWaitOutcome::Ended(event));
                    }
                }
                Some(TaskStreamSignal::RunEnded) => return Ok(TaskWaitOutcome::Removed),
                Some(TaskStreamSignal::Failed(error)) => return Err(error),
                None => return Ok(TaskWaitOutcome::TimedOut),
            },
        }
    }
}
