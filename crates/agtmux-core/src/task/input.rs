//! The inputs of the task machine.

use serde::{Deserialize, Serialize};

use super::exit::TaskExit;
use super::run::RunId;
use super::snapshot::TaskSessionSnapshot;
use crate::ids::{Generation, PaneId, WindowId};

/// Everything that can lead to a task event. Applying the same input again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskInput {
    /// A snapshot of the session. If the launch or exit of a run was applied after the snapshot began, the snapshot may
    /// be outdated for this run, so the machine ignores the snapshot for this run.
    Snapshot(TaskSessionSnapshot),
    /// The daemon launched a run. The daemon applies this input at once, so that even an immediate exit is reported.
    Started(LaunchedRun),
    /// The process of a run ended, as reported by its wrapper or a dead pane. The machine then waits for a snapshot,
    /// because killing a window also ends its process. If the window is gone, the machine reports `disappeared` instead
    /// of `exited`.
    Exited {
        run: RunId,
        exit: TaskExit,
        /// The total number of bells of the run. Bells that are not reported yet are reported before the exit.
        bells: u64,
        /// The last lines of output.
        output: String,
    },
    /// Like `Exited`, but the process still had its terminal when it ended. Its window was therefore not killed, so the
    /// exit is reported without a snapshot.
    ExitConfirmed { run: RunId, exit: TaskExit, bells: u64, output: String },
    /// A run rang the bell. `bells` is the total number of bells of the run.
    BellRang { run: RunId, bells: u64, output: String },
    /// The daemon is about to remove or stop tasks.
    RemovalPlanned(PlannedRemoval),
    /// The time that [`TaskMachine::next_tick_at`](super::TaskMachine::next_tick_at) returned has come.
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

/// A removal by the daemon. The daemon announces each removal to the task machine in advance.
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
