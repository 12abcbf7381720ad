use agtmux_api::wire::{TaskLogs, TaskLogsQuery, TaskSessionQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task_session::{TaskFacts, find_task, task_session};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::excerpt::{DEFAULT_CHARS, Excerpt, MAX_CHARS, OutputCollector};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "task_output",
    title: "Read the output of a task",
    description: "Read the output of a background task, running or ended: its beginning and its end, or from an offset.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<TaskOutputArgs>,
    output: output_schema::<TaskOutput>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskOutputArgs {
    /// The name of the task, or its window id such as @12.
    task: String,
    /// Where to read on, in bytes: the `next_offset` of an earlier result.
    offset: Option<u64>,
    /// How many characters at most. Default: 8500. At most 100000.
    max_chars: Option<usize>,
    /// The tmux session of the tasks. Default: the session of this project.
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TaskOutput {
    /// How to treat the text below.
    untrusted: &'static str,
    task: TaskFacts,
    output: Excerpt,
}

pub(super) async fn run(call: &ToolCall<'_>, args: TaskOutputArgs) -> ToolResult {
    let session = task_session(call, args.session.as_deref()).await?;
    let task = find_task(call, &session, &args.task).await?;
    let max_chars = args.max_chars.unwrap_or(DEFAULT_CHARS).min(MAX_CHARS);
    let output = read(call, &session, &task.window_id.to_string(), args.offset, max_chars).await?;
    let facts = TaskOutput { untrusted: untrusted::NOTICE, task: TaskFacts::from(&task), output };
    let text = format!(
        "Task {}. {}\n{}",
        facts.task.text(),
        facts.untrusted,
        facts.output.text(&format!("task {}", facts.task.window))
    );
    ToolAnswer::new(text, &facts)
}

/// Reads the output of the task in this window.
pub(super) async fn read(
    call: &ToolCall<'_>,
    session: &TaskSessionQuery,
    window: &str,
    offset: Option<u64>,
    max_chars: usize,
) -> Result<Excerpt, ToolError> {
    let TaskSessionQuery { session, socket } = session.clone();
    let query = TaskLogsQuery { session, socket, task: window.to_owned(), lines: None };
    let logs: TaskLogs = call.daemon.get("/v1/tasks/logs", &query).await?;
    Ok(OutputCollector::of_lines(&logs.lines, offset).excerpt(max_chars).explained("call task_output with"))
}
