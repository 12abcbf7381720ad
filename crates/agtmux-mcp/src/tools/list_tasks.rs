use agtmux_api::wire::TaskList;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task_session::{TaskFacts, task_session};
use crate::access::ToolNeeds;
use crate::answer::{ToolAnswer, ToolResult};
use crate::registry::{ToolEffect, ToolSpec, input_schema, output_schema};
use crate::tool_call::ToolCall;
use crate::untrusted::{self, marked};

pub(super) const SPEC: ToolSpec = ToolSpec {
    name: "list_tasks",
    title: "List tasks",
    description: "List the background tasks of this project with their states and exit codes.",
    needs: ToolNeeds::Nothing,
    effect: ToolEffect::Reads,
    input: input_schema::<ListTasksArgs>,
    output: output_schema::<ListedTasks>,
};

/// At most this many tasks are listed, the newest ones.
const MAX_TASKS: usize = 25;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTasksArgs {
    /// The tmux session of the tasks. Default: the session of this project.
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListedTasks {
    /// How to treat the names and commands below.
    untrusted: &'static str,
    session: String,
    total: usize,
    tasks: Vec<TaskFacts>,
}

pub(super) async fn run(call: &ToolCall<'_>, args: ListTasksArgs) -> ToolResult {
    let session = task_session(call, args.session.as_deref()).await?;
    let list: TaskList = call.daemon.get("/v1/tasks", &session).await?;
    let newest = list.tasks.len().saturating_sub(MAX_TASKS);
    let facts = ListedTasks {
        untrusted: untrusted::NOTICE,
        session: session.session,
        total: list.tasks.len(),
        tasks: list.tasks[newest..].iter().map(TaskFacts::from).collect(),
    };
    let lines: Vec<String> = facts.tasks.iter().map(TaskFacts::text).collect();
    let text = match lines.is_empty() {
        true => format!("Session {} has no tasks. run_task starts one.", facts.session),
        false => format!(
            "Session {}, {} tasks. {}\n{}",
            facts.session,
            facts.total,
            facts.untrusted,
            marked("tasks", &lines.join("\n"))
        ),
    };
    ToolAnswer::new(text, &facts)
}
