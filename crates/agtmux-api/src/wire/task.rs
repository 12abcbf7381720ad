//! Managed tasks. The types of their events and snapshots are in `agtmux_core::task`.

use agtmux_core::ids::{PaneId, WindowId};
use agtmux_core::task::{Delivery, TaskEvent, TaskSessionSnapshot};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects a task session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TaskSessionQuery {
    /// The name of the task session.
    pub session: String,
    /// The socket of the tmux server. Default: the user's default tmux server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
}

/// Starts a task. If a task with the same name exists, the new task replaces it in its window. A task that is still
/// running is replaced only if `replace` is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRunRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    /// The task's name: 1 to 40 letters, digits, `.`, `_` or `-`.
    pub task: String,
    /// The shell command.
    pub command: String,
    /// The working directory: an absolute path.
    pub cwd: String,
    /// The project that the session belongs to. Default: the working directory.
    #[serde(default)]
    pub project: Option<String>,
    /// The pid of the process that owns the session. Default: the agent among the caller's ancestors, if there is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
    /// If a task with the same name is still running, end it first. Without `replace`, the request fails in this case.
    #[serde(default)]
    pub replace: bool,
}

/// A started task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskStarted {
    pub session: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@12")]
    pub window_id: WindowId,
    pub task: String,
    pub cwd: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "%12")]
    pub pane_id: PaneId,
    pub run_id: String,
    pub socket: String,
}

/// Stops a task, given by its name or its window id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStopRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    pub task: String,
    /// Close the task's window at once instead of sending SIGTERM.
    #[serde(default)]
    pub window: bool,
    /// The user asked the caller for this, for example in a panel of the agent. Otherwise a caller that is an agent has
    /// decided by itself. Only the text of the task's event depends on this.
    #[serde(default)]
    pub by_user: bool,
}

/// Restarts a task with the same command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRestartRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    pub task: String,
    /// The pid of the process that owns the session. Default: the agent among the caller's ancestors, if there is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
}

/// Types text into a task that waits for input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskInputAction {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    pub task: String,
    pub text: String,
    #[serde(default)]
    pub no_enter: bool,
    #[serde(default)]
    pub client: Option<String>,
}

/// Cleans up a task session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCleanupRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
}

/// The tasks that were stopped or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskEndReport {
    pub session: String,
    /// Whether the session existed.
    pub exists: bool,
    pub tasks: Vec<EndedTask>,
}

/// A task that was stopped or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EndedTask {
    pub task: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@12")]
    pub window_id: WindowId,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TaskLogsQuery {
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    pub task: String,
    /// How many lines to return, counted from the end of the output. Default: all lines of the log file, or 2000 lines
    /// of the pane if the task has no log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// The output of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskLogs {
    pub session: String,
    pub task: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@12")]
    pub window_id: WindowId,
    pub run_id: Option<String>,
    /// The output as plain text, without escape sequences and without text that the task has overwritten.
    pub lines: Vec<String>,
    /// The path of the raw log file. A client can read this file to follow the output.
    pub log: Option<String>,
    pub dead: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TaskEventsQuery {
    /// Only events of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only events of the server with this socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Only events of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Only events of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Only events after the event with this sequence number. The `Last-Event-ID` header has the same effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The maximum number of events. If more events match, the newest ones are returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Task events, newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskEvents {
    pub schema_version: u32,
    /// The sequence number to pass as `after` in the next request. It is the number of the last event in `items`. If
    /// `items` is empty, it is `after` of this request, or else the number of the newest event of all tasks.
    pub seq: u64,
    pub generated_at: Timestamp,
    pub items: Vec<TaskEvent>,
}

/// One item of the task event stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskStreamItem {
    Event(Box<TaskEvent>),
    /// The last item of a stream that follows one run. The run will have no more events.
    Over {
        over: String,
    },
}

/// Reports that a session of a harness has started. A harness is the program that runs an agent, such as Pi. Earlier
/// harness sessions of the same project may have left task sessions in tmux. agtmux removes the task sessions without
/// running tasks and reports those with running tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStartupRequest {
    /// The task session of the starting harness session. The cleanup leaves this session alone.
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    /// The project whose sessions are checked: an absolute path.
    pub project: String,
    /// The pid of the process that owns the session. Default: the agent among the caller's ancestors, if there is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
}

/// The task sessions that agtmux found when a harness session started. Show this report to the user only; do not start
/// an agent turn for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskStartupReport {
    /// The sessions that agtmux has removed, because no task was running in them.
    pub removed: Vec<String>,
    /// The sessions with running tasks. agtmux keeps them.
    pub active: Vec<ActiveLeftoverSession>,
    /// Messages for the user: one about all removed sessions, and one for each session with running tasks.
    pub notices: Vec<String>,
    pub delivery: Delivery,
}

/// A task session left by an earlier harness session, with running tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActiveLeftoverSession {
    pub session: String,
    /// The id that the harness gave its session.
    pub session_id: Option<String>,
    pub tasks: Vec<String>,
    /// The harness session's title, or else its first user message.
    pub title: Option<String>,
    pub notice: String,
}

/// A snapshot of a task session.
pub type TaskList = TaskSessionSnapshot;
