//! Managed tasks: background work in a tmux session of its own, and what is told of it.
//!
//! A task is a window of a task session. What is known of it comes from two sides: looks at the session as a whole, and exact facts about
//! single runs (it was launched, it ended, it rang). `TaskMachine` makes the five semantic events of both.

mod delivery;
mod event;
mod exit;
mod input;
mod look;
mod name;
mod run;
mod session;

pub use delivery::{AgentTurn, Delivery, Level};
pub use event::{TaskEvent, TaskEventKind};
pub use exit::{Exit, Signal};
pub use input::{Ending, Launch, TaskInput};
pub use look::{PaneLook, SessionLook, TaskLook};
pub use name::{BadTaskName, TaskName};
pub use run::{BadRunId, RunId};
pub use session::{SessionNameError, TaskSession, project_slug};
