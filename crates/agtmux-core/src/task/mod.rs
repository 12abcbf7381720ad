//! Managed tasks: background work in a tmux session of its own, and what is told of it.
//!
//! A task is a window of a task session. What is known of it comes from two sides: looks at the session as a whole, and exact facts about
//! single runs (it was launched, it ended, it rang). [`TaskMachine`] makes the five semantic events of both.

mod delivery;
mod event;
mod exit;
mod input;
mod machine;
mod message;
mod name;
mod output;
mod prompt;
mod run;
mod session;
mod snapshot;
mod startup;

pub use delivery::{AgentTurn, Delivery, EventLevel};
pub use event::{TaskEvent, TaskEventKind};
pub use exit::{ExitSignal, TaskExit};
pub use input::{LaunchedRun, PlannedRemoval, TaskInput};
pub use machine::{BELL_HOLD, EXIT_HOLD, PROMPT_STABLE_FOR, TaskMachine};
pub use message::{ConversationMessage, MESSAGE_PREFIX, MessageDetails};
pub use name::{TaskName, TaskNameError};
pub use output::recent_output;
pub use prompt::{CursorPosition, cursor_line, recognize_prompt};
pub use run::{RunId, RunIdError};
pub use session::{SessionNameError, TaskSessionName, project_slug};
pub use snapshot::{TaskPaneSnapshot, TaskSessionSnapshot, TaskSnapshot};
pub use startup::{
    LeftoverAction, LeftoverSession, SessionOwnership, removed_notice, session_title, still_active_notice,
};
