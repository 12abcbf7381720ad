//! `agtmux task wait`: until a task has ended. Nothing is asked again and again: the daemon tells.

use std::time::Duration;

use agtmux_api::config::Span;
use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery, TaskList};
use agtmux_core::task::{Exit as TaskExit, TaskEventKind, TaskLook};
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::events::{Signal, follow};
use super::place::PlaceArgs;
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use crate::quit::Quit;

const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 when the task has ended with code 0, else with 1: also when the time is up, or its window is gone."
)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The task, by its name or the id of its window
    task: String,
    /// How long at the most, as 90s or 10m; for ever by default
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// Print what became of it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) enum Outcome {
    Ended(Box<TaskEvent>),
    TimeIsUp,
    /// Nothing more is told of it: it was started again, or taken away by us.
    TakenAway,
    Interrupted(Exit),
}

pub(crate) async fn run(args: WaitArgs) -> Result<Exit, CliError> {
    let (place, daemon) = (args.place.place()?, Daemon::from_env()?);
    // Before it is looked: an end between the two is told.
    let seen: TaskEvents =
        daemon.get("/v1/tasks/events", &TaskEventsQuery { limit: Some(1), ..Default::default() }).await?;
    let list: TaskList = daemon.get("/v1/tasks", &place).await?;
    let named = |task: &&TaskLook| task.window_name == args.task || task.window_id.to_string() == args.task;
    let Some(task) = list.tasks.iter().find(named) else {
        let message = Message::new(format!("there is no task '{}' in '{}'", args.task, place.session));
        return Err(CliError::failed(message.hint("agtmux task list")));
    };
    // tmux shows a task dead before it knows how it ended, but that will be told.
    if task.dead && (task.exit() != TaskExit::UNKNOWN || task.run.is_none()) {
        return as_shown(task, args.json);
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
    match until_end(&daemon, query, args.timeout.map(|span| span.0), &mut Quit::new()?).await? {
        Outcome::Interrupted(exit) => Ok(exit),
        Outcome::Ended(event) => {
            let line = if args.json { json!(event).to_string() } else { event.message.clone() };
            output::line(line.as_bytes())?;
            Ok(if event.exit_code == Some(0) { Exit::Ok } else { Exit::Failed })
        }
        // It had ended before anybody was there to tell of it.
        Outcome::TakenAway if task.dead => as_shown(task, args.json),
        Outcome::TakenAway => Err(taken_away(&args.task)),
        Outcome::TimeIsUp => {
            let message = Message::new(format!("'{}' still runs", args.task)).because("the time is up");
            Err(CliError::failed(message.hint(format!("agtmux task logs {} -f", args.task))))
        }
    }
}

fn as_shown(task: &TaskLook, json: bool) -> Result<Exit, CliError> {
    let end = json!({"type": "exited", "task": task.window_name, "window_id": task.window_id,
        "exit_code": task.exit_code, "signal": task.signal});
    let line = if json { end.to_string() } else { format!("{} exited with {}", task.window_name, task.exit()) };
    output::line(line.as_bytes())?;
    Ok(if task.exit().is_success() { Exit::Ok } else { Exit::Failed })
}

pub(super) fn taken_away(task: &str) -> CliError {
    let message = Message::new(format!("'{task}' was taken away, or started again, before it had ended by itself"));
    CliError::failed(message.hint("agtmux task list"))
}

pub(super) async fn until_end(
    daemon: &Daemon,
    query: TaskEventsQuery,
    patience: Option<Duration>,
    quit: &mut Quit,
) -> Result<Outcome, CliError> {
    let until = Instant::now() + patience.unwrap_or(FOR_EVER);
    let mut events = follow(daemon.clone(), query);
    loop {
        tokio::select! {
            exit = quit.requested() => return Ok(Outcome::Interrupted(exit)),
            () = sleep_until(until) => return Ok(Outcome::TimeIsUp),
            signal = events.recv() => match signal {
                Some(Signal::Event(event)) => {
                    if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                        return Ok(Outcome::Ended(event));
                    }
                }
                Some(Signal::Over) => return Ok(Outcome::TakenAway),
                Some(Signal::Failed(error)) => return Err(error),
                None => return Ok(Outcome::TimeIsUp),
            },
        }
    }
}
