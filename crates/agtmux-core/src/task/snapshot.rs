//! What one look at a task session shows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::exit::{ExitSignal, TaskExit};
use super::run::RunId;
use super::session::TaskSessionName;
use crate::ids::{Generation, PaneId, WindowId};

/// A whole session at one moment. A look that failed is no look: only a server that answered, or that is gone for sure, may say
/// that there is no such session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskSessionSnapshot {
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub session_name: TaskSessionName,
    pub exists: bool,
    /// When the look began.
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub captured_at: Timestamp,
    pub tasks: Vec<TaskSnapshot>,
    /// Which life of the tmux server this is: window ids begin anew with each. None when no server answers.
    #[serde(skip)]
    pub server: Option<Generation>,
}

impl TaskSessionSnapshot {
    pub fn missing(session_name: TaskSessionName, server: Option<Generation>, captured_at: Timestamp) -> Self {
        Self { session_name, exists: false, captured_at, tasks: Vec::new(), server }
    }
}

/// One window of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
pub struct TaskSnapshot {
    #[cfg_attr(feature = "schema", schemars(with = "String"), schema(value_type = String))]
    pub window_id: WindowId,
    pub window_name: String,
    /// The pane that counts: see [`PaneLook::primary`].
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub pane_id: Option<PaneId>,
    /// Whether anything below `pane_id` could be read.
    pub pane_state_known: bool,
    /// What was launched, else the pane's title, else its command.
    pub current_command: Option<String>,
    /// Where it was launched.
    pub task_cwd: Option<String>,
    pub dead: bool,
    pub exit_code: Option<i32>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub signal: Option<ExitSignal>,
    /// tmux's own sticky flag.
    pub bell: bool,
    /// Bells of the run that `run` names, or of the window where it names none. It only grows.
    pub bell_count: u64,
    /// The last lines of the pane.
    pub output_preview: String,
    /// The launch that the window holds, if it was one of ours.
    #[serde(rename = "run_id")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"), schema(value_type = Option<String>))]
    pub run: Option<RunId>,
    /// The line on which the cursor stands, up to the cursor. None if it was not looked at.
    #[serde(skip)]
    pub cursor_line: Option<String>,
    /// Which line that is, counted from the beginning of the pane's history: a prompt further down is asked anew.
    #[serde(skip)]
    pub cursor_row: Option<u64>,
    /// How many questions of the run were answered, as far as its output tells: what a prompt says after one is asked anew, also on the
    /// same line.
    #[serde(skip)]
    pub answers: u64,
}

impl TaskSnapshot {
    pub fn exit(&self) -> TaskExit {
        TaskExit { code: self.exit_code, signal: self.signal }
    }
}

/// One pane of a window, before it is decided which one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPaneSnapshot {
    pub pane_id: PaneId,
    pub dead: bool,
    pub exit: TaskExit,
}

impl TaskPaneSnapshot {
    /// The pane that a task was launched in, if it is still there; else the first. A user may split the window of a task.
    pub fn primary(panes: &[Self], launched: Option<PaneId>) -> Option<&Self> {
        panes.iter().find(|pane| Some(pane.pane_id) == launched).or_else(|| panes.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pane_of_the_launch_counts_else_the_first() {
        let pane = |id| TaskPaneSnapshot { pane_id: PaneId(id), dead: false, exit: TaskExit::UNKNOWN };
        let panes = [pane(4), pane(2), pane(7)];
        let primary = |launched| TaskPaneSnapshot::primary(&panes, launched).map(|pane| pane.pane_id.0);
        assert_eq!(primary(Some(PaneId(2))), Some(2));
        assert_eq!(primary(Some(PaneId(9))), Some(4));
        assert_eq!(primary(None), Some(4));
        assert_eq!(TaskPaneSnapshot::primary(&[], Some(PaneId(2))), None);
    }
}
