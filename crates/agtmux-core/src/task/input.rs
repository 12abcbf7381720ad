//! What the machine is told.

use serde::{Deserialize, Serialize};

use super::exit::TaskExit;
use super::run::RunId;
use super::snapshot::TaskSessionSnapshot;
use crate::ids::{Generation, PaneId, WindowId};

/// Everything that can lead to an event. Each may be told twice: what was told already changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskInput {
    /// A look at the session. It must show every launch that was told before it; of an end that was told after it began it says nothing.
    Snapshot(TaskSessionSnapshot),
    /// A run was launched, by us. Told at once, it makes sure that its end is told however soon it comes.
    Started(LaunchedRun),
    /// The process of a run ended, as its own wrapper or a dead pane says. It is followed by a look: one that no longer shows the window
    /// makes it a disappearance, for a process also ends when its window is killed.
    Exited {
        run: RunId,
        exit: TaskExit,
        /// How often it rang in all. A bell that was not told yet is told first.
        bells: u64,
        /// The last lines that it wrote.
        output: String,
    },
    /// The same of a process that had its terminal to its end: its window was not taken away from it, so nobody has to look.
    ExitConfirmed { run: RunId, exit: TaskExit, bells: u64, output: String },
    /// A run has rung, so often in all.
    BellRang { run: RunId, bells: u64, output: String },
    /// We are about to take something away.
    RemovalPlanned(PlannedRemoval),
    /// Time has passed: [`TaskMachine::wakes_at`](super::TaskMachine::wakes_at) asked for it.
    Tick,
}

/// One launch of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedRun {
    pub run: RunId,
    pub server: Generation,
    pub window: WindowId,
    pub pane: PaneId,
    /// The name of the window.
    pub task: String,
}

/// What we take away ourselves, told before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedRemoval {
    /// These windows hold a task that has ended.
    PruneDead(Vec<WindowId>),
    /// The whole session.
    KillAll,
    /// What runs in this window makes place for another launch.
    Replaced(WindowId),
    /// This task is stopped because somebody asked for it.
    Stopped { window: WindowId, by_user: bool },
}
