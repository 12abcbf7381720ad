//! The inputs of the task machine.

use serde::{Deserialize, Serialize};

use super::exit::TaskExit;
use super::run::RunId;
use super::snapshot::TaskSessionSnapshot;
use crate::ids::{Generation, PaneId, WindowId};

/// Everything that can lead to a task event. Applying the same input again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskInput {
    /// A snapshot of the session. It is ignored for a run whose launch or exit was applied after the snapshot began.
    Snapshot(TaskSessionSnapshot),
    /// The daemon launched a run. The daemon applies this input at once, so that even an immediate exit is reported.
    Started(LaunchedRun),
    /// The process of a run ended, as reported by its wrapper or a dead pane. The machine then waits for a snapshot: if
    /// the window is gone, the event becomes `disappeared`, because killing a window also ends its process.
    Exited {
        run: RunId,
        exit: TaskExit,
        /// The total number of bells. Unreported bells are reported first.
        bells: u64,
        /// The last lines of output.
        output: String,
    },
    /// The process ended and still had its terminal, so its window was not killed and no snapshot is needed.
    ExitConfirmed { run: RunId, exit: TaskExit, bells: u64, output: String },
    /// A run rang the bell; `bells` is the total.
    BellRang { run: RunId, bells: u64, output: String },
    /// The daemon is about to remove or stop tasks.
    RemovalPlanned(PlannedRemoval),
    /// Time has passed, as requested by [`TaskMachine::next_tick_at`](super::TaskMachine::next_tick_at).
    Tick,
}

/// One launch of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedRun {
    pub run: RunId,
    pub server: Generation,
    pub window: WindowId,
    pub pane: PaneId,
    /// The task's name, which is also its window's name.
    pub task: String,
}

/// A removal by the daemon, announced before it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedRemoval {
    /// Remove these windows, whose tasks have ended.
    PruneDead(Vec<WindowId>),
    /// Remove the whole session.
    KillAll,
    /// Replace the run in this window with a new launch.
    Replaced(WindowId),
    /// Stop this task on request.
    Stopped { window: WindowId, by_user: bool },
}
