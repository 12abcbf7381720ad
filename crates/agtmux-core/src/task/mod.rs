//! Managed tasks: background jobs in a dedicated tmux session, and their events.
//!
//! A task is a window of a task session. Its data comes from two sources: snapshots of the whole session, and exact
//! facts about single runs (launch, exit, bell). [`TaskMachine`] derives the five task events from both.

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
pub use message::{ConversationMessage, HarnessLine, HarnessMessage, MESSAGE_PREFIX, MessageDetails};
pub use name::{TaskName, TaskNameError};
pub use output::recent_output;
pub use prompt::{CursorPosition, cursor_line, recognize_prompt};
pub use run::{RunId, RunIdError};
pub use session::{SessionNameError, TaskSessionName, project_slug};
pub use snapshot::{TaskSessionSnapshot, TaskSnapshot};
pub use startup::{
    LeftoverAction, LeftoverSession, SessionOwnership, removed_notice, session_title, still_active_notice,
};
