//! Managed tasks: background work in a tmux session of its own, and what is told of it.
//!
//! A task is a window of a task session. What is known of it comes from two sides: looks at the session as a whole, and exact facts about
//! single runs (it was launched, it ended, it rang). [`TaskMachine`] makes the five semantic events of both.

mod delivery;
mod event;
mod exit;
mod input;
mod look;
mod machine;
mod message;
mod name;
mod output;
mod prompt;
mod run;
mod session;
mod startup;

pub use delivery::{AgentTurn, Delivery, Level};
pub use event::{TaskEvent, TaskEventKind};
pub use exit::{Exit, Signal};
pub use input::{Ending, Launch, TaskInput};
pub use look::{PaneLook, SessionLook, TaskLook};
pub use machine::{BELL_WAITS, EXIT_WAITS, PROMPT_STANDS, TaskMachine};
pub use message::{Conversation, Details, PREFIX};
pub use name::{BadTaskName, TaskName};
pub use output::recent_output;
pub use prompt::{Cursor, cursor_line, recognise};
pub use run::{BadRunId, RunId};
pub use session::{SessionNameError, TaskSession, project_slug};
pub use startup::{Fate, FoundSession, Keeper, removed, session_title, still_active};
