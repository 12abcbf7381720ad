//! `agtmux task wait`: waits for the end of a task on the event stream, without polling.

use std::time::Duration;

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery, TaskList, TaskStreamItem};
use agtmux_client::{DaemonClient, StreamSignal};
use agtmux_core::task::{TaskEventKind, TaskExit, TaskSnapshot};
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::events::follow;
use super::session_args::TaskSessionArgs;
use crate::error::{CliError, CliExit, CliResult};
use crate::output;
use crate::quit_signals::QuitSignals;

const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Debug, Args)]
#[command(after_help = "Exits with 0 if the task exits with 0. Exits with 1 if the task fails, if its window is \
    gone, or at the timeout.")]
pub(crate) struct TaskWaitArgs {
    #[command(flatten)]
    session: TaskSessionArgs,
    /// The task, by name or window id
    task: String,
    /// Give up after this time, such as 90s or 10m [default: wait forever]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<ConfigDuration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) enum TaskWaitOutcome {
    Ended(Box<TaskEvent>),
    TimedOut,
    /// The daemon will not report an end of this run, because the task was restarted or agtmux removed its window.
    Removed,
    Interrupted(CliExit),
}

pub(crate) async fn run(args: TaskWaitArgs) -> CliResult {
    let (task_session, daemon) = (args.session.resolve()?, DaemonClient::from_env()?);
    // Read the event position before the list, so that an end between the two is not missed.
    let seen: TaskEvents =
        daemon.get("/v1/tasks/events", &TaskEventsQuery { limit: Some(1), ..Default::default() }).await?;
    let list: TaskList = daemon.get("/v1/tasks", &task_session).await?;
    let named = |task: &&TaskSnapshot| task.window_name == args.task || task.window_id.to_string() == args.task;
    let Some(task) = list.tasks.iter().find(named) else {
        return Err(CliError::failed(format!(
            "there is no task '{}' in session '{}'",
            args.task, task_session.session
        ))
        .hint("agtmux task list"));
    };
    // tmux can show a dead pane before it knows the exit status. The event has the status.
    if task.dead && (task.exit() != TaskExit::UNKNOWN || task.run.is_none()) {
        return print_ended(task, args.json);
    }
    let query = TaskEventsQuery {
        session: Some(task_session.session.clone()),
        socket: task_session.socket.clone(),
        // Filter by name only if there is no run id: the window may be renamed meanwhile.
        task: Some(task.window_name.clone()).filter(|_| task.run.is_none()),
        run_id: task.run.clone().map(String::from),
        // The end of a run is one event. It may be older than the tmux listing, so search all events of the run.
        after: Some(if task.run.is_some() { 0 } else { seen.seq }),
        limit: None,
    };
    match wait_until_end(&daemon, query, args.timeout.map(|span| span.0), &mut QuitSignals::new()?).await? {
        TaskWaitOutcome::Interrupted(exit) => Err(CliError::silent(exit)),
        TaskWaitOutcome::Ended(event) => {
            if args.json {
                output::json(&event)?
            } else {
                output::line(&event.message)?
            }
            fail_unless(event.exit_code == Some(0))
        }
        // The task had already ended, but no event was recorded for its end.
        TaskWaitOutcome::Removed if task.dead => print_ended(task, args.json),
        TaskWaitOutcome::Removed => Err(removed_error(&args.task)),
        TaskWaitOutcome::TimedOut => Err(CliError::failed(format!("task '{}' is still running", args.task))
            .because("the time is up")
            .hint(format!("agtmux task logs {} -f", args.task))),
    }
}

fn print_ended(task: &TaskSnapshot, json: bool) -> CliResult {
    let end = json!({"type": "exited", "task": task.window_name, "window_id": task.window_id,
        "exit_code": task.exit_code, "signal": task.signal});
    match json {
        true => output::json(&end)?,
        false => output::line(&format!("{} exited with {}", task.window_name, task.exit()))?,
    }
    fail_unless(task.exit().is_success())
}

/// Fails without a message, because the output already says how the task ended.
fn fail_unless(success: bool) -> CliResult {
    if success { Ok(()) } else { Err(CliError::silent(CliExit::Failed)) }
}

pub(super) fn removed_error(task: &str) -> CliError {
    CliError::failed(format!("task '{task}' was removed or restarted before it ended")).hint("agtmux task list")
}

pub(crate) async fn wait_until_end(
    daemon: &DaemonClient,
    query: TaskEventsQuery,
    patience: Option<Duration>,
    quit: &mut QuitSignals,
) -> CliResult<TaskWaitOutcome> {
    let until = Instant::now() + patience.unwrap_or(NO_TIMEOUT);
    let mut events = follow(daemon, query).await?;
    loop {
        tokio::select! {
            exit = quit.received() => return Ok(TaskWaitOutcome::Interrupted(exit)),
            () = sleep_until(until) => return Ok(TaskWaitOutcome::TimedOut),
            signal = events.next() => match signal? {
                StreamSignal::Event(TaskStreamItem::Event(event)) => {
                    if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                        return Ok(TaskWaitOutcome::Ended(event));
                    }
                }
                StreamSignal::Event(TaskStreamItem::Over { .. }) => return Ok(TaskWaitOutcome::Removed),
                StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
            },
        }
    }
}
