//! The five things that are told of a task.

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
    /// What happened to a task.
    TaskEventKind {
        /// It was launched.
        Started => "started",
        /// Its process ended.
        Exited => "exited",
        /// It rang the terminal's bell.
        Notify => "notify",
        /// It waits at a prompt.
        Input => "input",
        /// Its window is gone, and it was not seen to end.
        Disappeared => "disappeared",
    }
);

/// One event, in the form in which it is stored and sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskEvent {
    #[serde(rename = "type")]
    pub kind: TaskEventKind,
    /// The task's name: that of its window.
    pub task: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub window_id: WindowId,
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub pane_id: Option<PaneId>,
    /// Null for a window that was not launched as a task.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub run_id: Option<RunId>,
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub session: TaskSessionName,
    /// Of an `exited`, where it is known.
    pub exit_code: Option<i32>,
    /// Of an `exited` by a signal: its name.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub signal: Option<ExitSignal>,
    /// Of an `input`: what is asked.
    pub prompt: Option<String>,
    /// Of a `notify`: how often the run has rung so far.
    pub bell_count: Option<u64>,
    /// The last useful lines of what it wrote, with secrets taken out.
    pub recent_output: Vec<String>,
    pub level: EventLevel,
    pub message: String,
    /// This `notify` is told by the message of the `exited` that follows it, and not by itself.
    #[serde(default)]
    pub collapsed: bool,
    pub delivery: Delivery,
    /// 0 until it is written down.
    pub seq: u64,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
}

impl TaskEvent {
    /// The state in which it leaves the task. None where there is no task any more.
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
