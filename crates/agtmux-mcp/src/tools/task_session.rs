//! The session of the client's tasks, and what results say about a task.

use std::fmt::Write;

use agtmux_api::wire::{TaskList, TaskSessionQuery};
use agtmux_core::task::{TaskExit, TaskSessionName, TaskSnapshot};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::ToolError;
use crate::tool_call::ToolCall;
use crate::untrusted::{bounded_field, field};

/// The maximum length of a task's command in a list.
const MAX_COMMAND_CHARS: usize = 200;

/// A task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct TaskFacts {
    pub(super) task: String,
    /// The id of its tmux window, such as @12.
    pub(super) window: String,
    pub(super) running: bool,
    /// The exit code of a task that has ended; null if it runs or the code is unknown.
    pub(super) exit_code: Option<i32>,
    /// The signal that ended the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
}

impl From<&TaskSnapshot> for TaskFacts {
    fn from(task: &TaskSnapshot) -> Self {
        let command = task.current_command.as_deref();
        Self {
            task: field(&task.window_name),
            window: task.window_id.to_string(),
            running: !task.dead,
            exit_code: task.exit_code.filter(|_| task.dead),
            signal: task.signal.filter(|_| task.dead).map(|signal| signal.to_string()),
            command: command.map(|command| bounded_field(command, MAX_COMMAND_CHARS)),
            cwd: task.task_cwd.as_deref().map(field),
        }
    }
}

impl TaskFacts {
    pub(super) fn text(&self) -> String {
        let mut line = format!("{} ({})  {}", self.task, self.window, self.state());
        let _ = self.command.as_ref().map(|command| write!(line, "  {command}"));
        let _ = self.cwd.as_ref().map(|cwd| write!(line, "  in {cwd}"));
        line
    }

    fn state(&self) -> String {
        match self.running {
            true => "running".to_owned(),
            false => exit_text(self.exit_code, self.signal.as_deref()),
        }
    }
}

pub(super) fn exit_text(code: Option<i32>, signal: Option<&str>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "ended; the exit code is unknown".to_owned(),
    }
}

/// The task session that the client names, that the environment names, or that belongs to the project.
pub(super) async fn task_session(call: &ToolCall<'_>, given: Option<&str>) -> Result<TaskSessionQuery, ToolError> {
    let named = given.map(str::to_owned).or_else(|| call.options.task_session.clone());
    let invalid = |error: agtmux_core::task::SessionNameError| ToolError::new(error.to_string());
    let session = match named {
        Some(name) => name.parse::<TaskSessionName>().map_err(invalid)?.to_string(),
        None => TaskSessionName::default_of(&call.options.dir).map_err(invalid)?.to_string(),
    };
    let socket = call.caller().await?.socket.unwrap_or_else(|| call.options.socket.clone());
    Ok(TaskSessionQuery { session, socket: Some(socket) })
}

/// The task with this name or window id.
pub(super) async fn find_task(
    call: &ToolCall<'_>,
    session: &TaskSessionQuery,
    task: &str,
) -> Result<TaskSnapshot, ToolError> {
    let list: TaskList = call.daemon.get("/v1/tasks", session).await?;
    let is_it = |snapshot: &&TaskSnapshot| snapshot.window_name == task || snapshot.window_id.to_string() == task;
    list.tasks.iter().find(is_it).cloned().ok_or_else(|| {
        ToolError::new(format!("there is no task '{}' in session '{}'", field(task), session.session))
            .with_hint("call list_tasks")
    })
}

/// Whether the exit of a dead task is known. tmux can show a dead pane before it knows the exit status.
pub(super) fn has_known_end(task: &TaskSnapshot) -> bool {
    task.dead && (task.exit() != TaskExit::UNKNOWN || task.run.is_none())
}
