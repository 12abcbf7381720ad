//! Snapshots of a task session.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::exit::{ExitSignal, TaskExit};
use super::run::RunId;
use super::session::TaskSessionName;
use crate::ids::{Generation, PaneId, WindowId};

/// A task session at one moment. If the session cannot be read, there is no snapshot. A snapshot reports a missing
/// session only if the tmux server has answered or is known to be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskSessionSnapshot {
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub session_name: TaskSessionName,
    pub exists: bool,
    /// When the snapshot began.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub captured_at: Timestamp,
    pub tasks: Vec<TaskSnapshot>,
    /// The tmux server generation. Window ids restart with each generation. `None` when no server answers.
    #[serde(skip)]
    pub server: Option<Generation>,
}

impl TaskSessionSnapshot {
    pub fn missing(session_name: TaskSessionName, server: Option<Generation>, captured_at: Timestamp) -> Self {
        Self { session_name, exists: false, captured_at, tasks: Vec::new(), server }
    }
}

/// One task window of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskSnapshot {
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub window_id: WindowId,
    pub window_name: String,
    /// The task's pane: the pane in which the task was launched or, if that pane is gone, the window's first pane.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub pane_id: Option<PaneId>,
    /// Whether the pane's state could be read. If false, the other pane fields are not reliable.
    pub pane_state_known: bool,
    /// The launched command, or else the pane's title, or else the pane's current command.
    pub current_command: Option<String>,
    /// The directory in which the task was launched.
    pub task_cwd: Option<String>,
    pub dead: bool,
    pub exit_code: Option<i32>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub signal: Option<ExitSignal>,
    /// tmux's bell flag, which stays set until the window is viewed.
    pub bell: bool,
    /// The number of bells of the run. If the window has no run, the number of bells of the window. The number never
    /// decreases.
    pub bell_count: u64,
    /// The last lines of the pane's output.
    pub output_preview: String,
    /// The id of the run in the window, if agtmux launched it.
    #[serde(rename = "run_id")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub run: Option<RunId>,
    /// The text of the cursor's line up to the cursor. `None` if the line was not read.
    #[serde(skip)]
    pub cursor_line: Option<String>,
    /// The cursor's line number, counted from the start of the pane's history. If the same prompt text appears on a
    /// later line, it is a new prompt.
    #[serde(skip)]
    pub cursor_row: Option<u64>,
    /// The number of prompts answered so far, derived from the output. If the same prompt text appears after a further
    /// answer, it is a new prompt, even on the same line.
    #[serde(skip)]
    pub answers: u64,
    /// Whether the daemon launched the run and the task machine has not applied the launch yet.
    #[serde(skip)]
    pub awaits_launch: bool,
}

impl TaskSnapshot {
    pub fn exit(&self) -> TaskExit {
        TaskExit { code: self.exit_code, signal: self.signal }
    }
}
