use agtmux_api::wire::{TaskEndReport, TaskStopRequest};
use agtmux_client::parse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task_session::{exit_text, task_session};
use crate::access::{McpPermission, ToolNeeds};
use crate::answer::{ToolAnswer, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::field;

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "stop_task",
    title: "Stop a task",
    description: "Stop a background task: SIGTERM, and SIGKILL if it is still running after 5 seconds. Its output stays. \
        Needs the user's permission.",
    needs: ToolNeeds::Permission(McpPermission::StopTask),
    effect: ToolEffect::Changes,
    input: input_schema::<StopTaskArgs>,
    output: output_schema::<StoppedTask>,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopTaskArgs {
    /// The name of the task, or its window id such as @12.
    task: String,
    /// The tmux session of the task. Default: the session of this project.
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StoppedTask {
    task: String,
    /// How the task ended.
    result: String,
}

pub(super) async fn run(call: &ToolCall<'_>, args: StopTaskArgs) -> ToolResult {
    let session = task_session(call, args.session.as_deref()).await?;
    let stop = TaskStopRequest {
        session: session.session,
        socket: session.socket,
        task: args.task.clone(),
        window: false,
        by_user: false,
    };
    let report: TaskEndReport = parse(&call.daemon.act("/v1/tasks/stop", &stop).await?)?;
    let result = match report.tasks.first() {
        Some(ended) => exit_text(ended.exit_code, ended.signal.as_deref()),
        None => "it had already ended".to_owned(),
    };
    let facts = StoppedTask { task: field(&args.task), result };
    ToolAnswer::new(format!("Task '{}': {}", facts.task, facts.result), &facts)
}
