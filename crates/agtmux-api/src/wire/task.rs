//! Managed tasks. What is told of them, and how they look, is in the words of `agtmux_core::task`.

use agtmux_core::ids::{PaneId, WindowId};
use agtmux_core::task::{Delivery, TaskEvent, TaskSessionSnapshot};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which tasks are meant.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TaskSessionQuery {
    /// The name of the tmux session that holds them.
    pub session: String,
    /// The tmux server's socket; left out, the usual one of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
}

/// Starts a task, or starts it again in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRunRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    /// 1 to 40 letters, digits, `.`, `_` or `-`.
    pub task: String,
    /// As a shell reads it.
    pub command: String,
    /// Where it runs: an absolute path.
    pub cwd: String,
    /// The project that the session belongs to; left out, where it runs.
    #[serde(default)]
    pub project: Option<String>,
    /// The process that the session is kept for; left out, the agent that asks, if it is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
}

/// A task that runs.
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

/// One task by its name, or by the id of its window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStopRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    pub task: String,
    /// Its window goes, too.
    #[serde(default)]
    pub window: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRestartRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    pub task: String,
    /// The process that the session is kept for; left out, the agent that asks, if it is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
}

/// Text for a task that waits for it.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskCleanupRequest {
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
}

/// What was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskEndReport {
    pub session: String,
    /// Whether there was such a session.
    pub exists: bool,
    pub tasks: Vec<EndedTask>,
}

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
    /// The last lines; left out, all that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}

/// What a task has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskLogs {
    pub session: String,
    pub task: String,
    #[schemars(with = "String")]
    #[schema(value_type = String, example = "@12")]
    pub window_id: WindowId,
    pub run_id: Option<String>,
    /// Plain text, as it would stand on a screen of any size.
    pub lines: Vec<String>,
    /// The bytes as they came, for whoever wants to follow them.
    pub log: Option<String>,
    pub dead: bool,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TaskEventsQuery {
    /// Only of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only of the server with this socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Only of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Only of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Only after this event. The `Last-Event-ID` header does the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The newest, so many at the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What happened to tasks, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskEvents {
    pub schema_version: u32,
    /// Nothing after this number has happened yet.
    pub seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub generated_at: Timestamp,
    pub items: Vec<TaskEvent>,
}

/// What the stream of events tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskStreamItem {
    Event(Box<TaskEvent>),
    /// Where one run was asked for: nothing more will be told of it. The stream ends with this.
    Over {
        over: String,
    },
}

/// A harness session begins: what earlier ones of the same project have left is cleaned up or named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStartupRequest {
    /// The session that begins. It is not looked at.
    pub session: String,
    #[serde(default)]
    pub socket: Option<String>,
    /// Whose sessions are looked at: an absolute path.
    pub project: String,
    /// The process that the session is kept for; left out, the agent that asks, if it is one.
    #[serde(default)]
    #[serde(alias = "keeper")]
    pub owner: Option<u32>,
}

/// What was found. It is for the person, and gives no agent a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskStartupReport {
    /// Sessions in which nothing ran any more.
    pub removed: Vec<String>,
    /// Sessions in which something still runs. They are left as they are.
    pub active: Vec<ActiveLeftoverSession>,
    /// The same in words.
    pub notices: Vec<String>,
    pub delivery: Delivery,
}

/// A session that an earlier session of the harness has left, with tasks that still run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ActiveLeftoverSession {
    pub session: String,
    /// The harness's own id of its session.
    pub session_id: Option<String>,
    pub tasks: Vec<String>,
    /// The harness session's title, else the first thing that the user said in it.
    pub title: Option<String>,
    pub notice: String,
}

/// What a task session looks like now.
pub type TaskList = TaskSessionSnapshot;
