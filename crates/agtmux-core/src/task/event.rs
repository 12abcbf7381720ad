//! The five task events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::delivery::{Delivery, EventLevel};
use super::exit::ExitSignal;
use super::run::RunId;
use super::session::TaskSessionName;
use crate::ids::{PaneId, WindowId};
use crate::state::State;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// The kind of a task event.
    TaskEventKind {
        /// The task was launched.
        Started => "started",
        /// The task's process ended.
        Exited => "exited",
        /// The task rang the terminal bell.
        Notify => "notify",
        /// The task waits at a prompt.
        Input => "input",
        /// The task's window is gone and no exit was observed.
        Disappeared => "disappeared",
    }
);

/// A task event, as stored and sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskEvent {
    #[serde(rename = "type")]
    pub kind: TaskEventKind,
    /// The task's name, which is also its window's name.
    pub task: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub window_id: WindowId,
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub pane_id: Option<PaneId>,
    /// The id of the run; null for a window that was not launched as a task.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub run_id: Option<RunId>,
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub session: TaskSessionName,
    /// For `exited`: the exit code, if known.
    pub exit_code: Option<i32>,
    /// For `exited` by a signal: the signal's name.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub signal: Option<ExitSignal>,
    /// For `input`: the prompt.
    pub prompt: Option<String>,
    /// For `notify`: the number of bells of the run so far.
    pub bell_count: Option<u64>,
    /// The last useful lines of output, with secrets redacted.
    pub recent_output: Vec<String>,
    pub level: EventLevel,
    pub message: String,
    /// Whether the message of the following `exited` event already covers this `notify` event.
    #[serde(default)]
    pub collapsed: bool,
    pub delivery: Delivery,
    /// The sequence number; 0 until the event is stored.
    pub seq: u64,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
}

impl TaskEvent {
    /// The state of the task after this event. `None` if the task is gone.
    pub fn state(&self) -> Option<State> {
        match self.kind {
            TaskEventKind::Started | TaskEventKind::Notify => Some(State::Running),
            TaskEventKind::Input => Some(State::WaitingInput),
            TaskEventKind::Exited if self.exit_code == Some(0) => Some(State::Completed),
            TaskEventKind::Exited => Some(State::Error),
            TaskEventKind::Disappeared => None,
        }
    }
}
