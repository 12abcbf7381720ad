use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery, TaskSessionQuery, TaskStreamItem};
use agtmux_client::StreamSignal;
use agtmux_core::task::{TaskEventKind, TaskSnapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::task_output;
use super::task_session::{exit_text, find_task, has_known_end, task_session};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::excerpt::{DEFAULT_CHARS, Excerpt};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, field};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "wait_task",
    title: "Wait for a task",
    description: "Wait until a background task has ended, and return its exit code and its output. Returns after 40 \
        seconds at the latest; if the result says still_running, do something else or call wait_task again.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<WaitTaskArgs>,
    output: output_schema::<WaitedTask>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitTaskArgs {
    /// The name of the task, or its window id such as @12.
    task: String,
    /// How long to wait, in seconds. Default and maximum: 40.
    timeout_s: Option<u64>,
    /// The tmux session of the tasks. Default: the session of this project.
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitedTask {
    task: String,
    /// `ended` or `still_running`.
    status: &'static str,
    /// How the task ended; null if it runs.
    end: Option<TaskEnd>,
}

/// The end of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TaskEnd {
    /// Null if a signal ended the task, or if the code is unknown.
    exit_code: Option<i32>,
    signal: Option<String>,
    /// How the task ended, in words.
    message: String,
    /// How to treat the output.
    untrusted: &'static str,
    /// The output; null if the window of the task is gone.
    output: Option<Excerpt>,
}

impl TaskEnd {
    pub(super) fn text(&self, task: &str) -> String {
        let output = self.output.as_ref().map(|output| output.text(&format!("task {task}")));
        format!("{}\n{}\n{}", self.message, self.untrusted, output.unwrap_or_else(|| "The output is gone.".into()))
    }
}

pub(super) async fn run(call: &ToolCall<'_>, args: WaitTaskArgs) -> ToolResult {
    let session = task_session(call, args.session.as_deref()).await?;
    let end = end_of(call, &session, &args.task, call.deadline(args.timeout_s)).await?;
    let status = if end.is_some() { "ended" } else { "still_running" };
    let facts = WaitedTask { task: field(&args.task), status, end };
    let text = match &facts.end {
        Some(end) => end.text(&facts.task),
        None => format!(
            "still_running: task '{}' has not ended. Call wait_task again, or go on; later results tell you when it ends.",
            facts.task
        ),
    };
    ToolAnswer::new(text, &facts)
}

/// Waits for the end of a task. `None` if it still runs at the deadline.
pub(super) async fn end_of(
    call: &ToolCall<'_>,
    session: &TaskSessionQuery,
    task: &str,
    deadline: Instant,
) -> Result<Option<TaskEnd>, ToolError> {
    // Read the position before the list, so that an end between the two is not missed.
    let newest = TaskEventsQuery { limit: Some(1), ..TaskEventsQuery::default() };
    let seen: TaskEvents = call.daemon.get("/v1/tasks/events", &newest).await?;
    let snapshot = find_task(call, session, task).await?;
    let window = snapshot.window_id.to_string();
    let (exit_code, signal, message) = if has_known_end(&snapshot) {
        let signal = snapshot.signal.map(|signal| signal.to_string());
        let message = format!("{} {}", field(&snapshot.window_name), exit_text(snapshot.exit_code, signal.as_deref()));
        (snapshot.exit_code, signal, message)
    } else {
        let followed = timeout_at(deadline, follow(call, session, &snapshot, seen.seq));
        let event = tokio::select! {
            event = followed => event.unwrap_or(Ok(None))?,
            () = call.cancelled() => None,
        };
        let Some(event) = event else { return Ok(None) };
        call.state.set_reported_task_event(event.seq);
        (event.exit_code, event.signal.map(|signal| signal.to_string()), field(&event.message))
    };
    let output = task_output::read(call, session, &window, None, DEFAULT_CHARS).await.ok();
    Ok(Some(TaskEnd { exit_code, signal, message, untrusted: untrusted::NOTICE, output }))
}

/// Follows the events of the run until it ends.
async fn follow(
    call: &ToolCall<'_>,
    session: &TaskSessionQuery,
    task: &TaskSnapshot,
    seen: u64,
) -> Result<Option<Box<TaskEvent>>, ToolError> {
    let query = TaskEventsQuery {
        session: Some(session.session.clone()),
        socket: session.socket.clone(),
        // Without a run, the name is all there is.
        task: Some(task.window_name.clone()).filter(|_| task.run.is_none()),
        run_id: task.run.clone().map(String::from),
        // The end of a run is one event. It may be older than the list.
        after: Some(if task.run.is_some() { 0 } else { seen }),
        limit: None,
    };
    let after = query.after;
    let mut events = call.daemon.follow::<TaskStreamItem>("/v1/tasks/events/stream", query, after);
    loop {
        match events.next().await? {
            StreamSignal::Event(TaskStreamItem::Event(event)) => {
                if matches!(event.kind, TaskEventKind::Exited | TaskEventKind::Disappeared) {
                    return Ok(Some(event));
                }
            }
            StreamSignal::Event(TaskStreamItem::Over { .. }) => {
                let message = format!("task '{}' was removed or restarted before it ended", field(&task.window_name));
                return Err(ToolError::new(message).with_hint("call list_tasks"));
            }
            StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
        }
    }
}
