//! One window of a task session and the run in it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::exit::TaskExit;
use super::super::run::RunId;
use super::super::snapshot::TaskSnapshot;
use super::prompt_tracker::PromptTracker;
use super::run_memory::RunFacts;
use super::{BELL_HOLD, EXIT_HOLD, REMOVAL_TIMEOUT, UNKNOWN_EXIT_HOLD};
use crate::ids::PaneId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskSlot {
    pub(super) task: String,
    pub(super) pane: Option<PaneId>,
    pub(super) run: RunState,
    /// Earlier runs of this window. The list contains runs whose exit was not reported yet, and launched runs whose
    /// dead pane was respawned by a user.
    #[serde(alias = "past")]
    pub(super) earlier_runs: Vec<RunState>,
    #[serde(alias = "taken")]
    pub(super) removal: Option<Removal>,
    #[serde(alias = "question")]
    pub(super) prompt: PromptTracker,
    /// tmux's bell flag in the last snapshot. Used only for windows without a bell counter.
    pub(super) bell_flag: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunState {
    /// `None` for a window that was not launched as a task.
    pub(super) id: Option<RunId>,
    pub(super) phase: RunPhase,
    pub(super) bells: BellState,
    /// The last useful lines of output.
    pub(super) output: Vec<String>,
    /// Whether a snapshot has shown the pane dead.
    pub(super) seen_dead: bool,
    /// Whether the run was already in the first snapshot. The start of such a run is not reported.
    #[serde(alias = "found")]
    pub(super) in_baseline: bool,
    /// When the launch of the run was applied. Not stored, because the clock may be different after the daemon
    /// restarts.
    #[serde(skip)]
    pub(super) launched_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunPhase {
    /// The process runs.
    Live,
    /// The process ended. The machine does not know yet whether the window still exists.
    #[serde(alias = "Ending")]
    ExitPending { exit: TaskExit, since: Timestamp },
    /// The run ended. Its exit was reported or needs no report.
    #[serde(alias = "Over")]
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BellState {
    pub(super) counted: u64,
    #[serde(alias = "told")]
    pub(super) reported: u64,
    /// The time of the oldest unreported bell.
    pub(super) since: Option<Timestamp>,
}

/// A removal planned by the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removal {
    #[serde(alias = "how")]
    pub(super) kind: RemovalKind,
    pub(super) at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RemovalKind {
    Pruned,
    KilledAll,
    Replaced,
    Stopped { by_user: bool },
}

impl BellState {
    /// Updates the number of bells. A `total` that is smaller than the known number is outdated and ignored.
    pub(super) fn count(&mut self, total: u64, now: Timestamp) {
        if total > self.counted {
            self.counted = total;
        }
        if self.counted > self.reported && self.since.is_none() {
            self.since = Some(now);
        }
    }

    pub(super) fn has_unreported(&self) -> bool {
        self.counted > self.reported
    }
}

impl RunState {
    pub(super) fn new(id: Option<RunId>) -> Self {
        Self {
            id,
            phase: RunPhase::Live,
            bells: BellState::default(),
            output: Vec::new(),
            seen_dead: false,
            in_baseline: false,
            launched_at: None,
        }
    }

    pub(super) fn apply_facts(&mut self, facts: RunFacts, now: Timestamp) {
        self.bells.count(facts.bells, now);
        if !facts.output.is_empty() {
            self.output = facts.output;
        }
        if let (Some(exit), RunPhase::Live) = (facts.exit, &self.phase) {
            self.phase = RunPhase::ExitPending { exit, since: now };
        }
    }

    /// Records an exit seen in a snapshot. tmux shows a pane dead a moment before it knows the exit status, so a later
    /// snapshot may add the status.
    pub(super) fn record_exit(&mut self, seen: TaskExit, now: Timestamp) {
        match &mut self.phase {
            RunPhase::Live => self.phase = RunPhase::ExitPending { exit: seen, since: now },
            RunPhase::ExitPending { exit, .. } if *exit == TaskExit::UNKNOWN => *exit = seen,
            RunPhase::ExitPending { .. } | RunPhase::Closed => {}
        }
    }

    /// The latest time at which a pending exit is reported, even if no further snapshot arrives.
    pub(super) fn exit_due_at(&self) -> Option<Timestamp> {
        let RunPhase::ExitPending { exit, since } = self.phase else { return None };
        since.checked_add(if exit == TaskExit::UNKNOWN { UNKNOWN_EXIT_HOLD } else { EXIT_HOLD }).ok()
    }

    pub(super) fn exit_is_unknown(&self) -> bool {
        matches!(self.phase, RunPhase::ExitPending { exit: TaskExit::UNKNOWN, .. })
    }
}

impl RunState {
    fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let exit = match &mut self.phase {
            RunPhase::ExitPending { since, .. } => Some(since),
            RunPhase::Live | RunPhase::Closed => None,
        };
        exit.into_iter().chain(&mut self.bells.since).chain(&mut self.launched_at)
    }
}

impl TaskSlot {
    /// All times in this slot.
    pub(super) fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let runs = [&mut self.run].into_iter().chain(&mut self.earlier_runs);
        let removal = self.removal.as_mut().map(|removal| &mut removal.at);
        runs.flat_map(RunState::times_mut).chain(removal).chain(self.prompt.times_mut())
    }

    pub(super) fn new(task: String, pane: Option<PaneId>, run: RunState) -> Self {
        Self {
            task,
            pane,
            run,
            earlier_runs: Vec::new(),
            removal: None,
            prompt: PromptTracker::default(),
            bell_flag: false,
        }
    }

    /// Builds the slot of a window that was already in the first snapshot. Its start, its bells so far and an exit that
    /// already happened are not reported.
    pub(super) fn from_baseline(snapshot: &TaskSnapshot) -> Self {
        let mut slot = Self::new(snapshot.window_name.clone(), snapshot.pane_id, RunState::new(snapshot.run.clone()));
        let count = snapshot.bell_count.max(u64::from(snapshot.bell && snapshot.run.is_none()));
        slot.run.bells = BellState { counted: count, reported: count, since: None };
        slot.bell_flag = snapshot.bell;
        slot.run.in_baseline = true;
        if snapshot.pane_state_known && snapshot.dead {
            slot.run.phase = RunPhase::Closed;
            slot.run.seen_dead = true;
        }
        slot
    }

    /// Drops a planned removal that did not happen in time.
    pub(super) fn expire_removal(&mut self, now: Timestamp) {
        self.removal.take_if(|removal| now.duration_since(removal.at) > REMOVAL_TIMEOUT);
    }

    /// Counts the bells that a snapshot shows.
    pub(super) fn count_bells(&mut self, snapshot: &TaskSnapshot, now: Timestamp) {
        let flag_rose = snapshot.bell && !self.bell_flag;
        self.bell_flag = snapshot.bell;
        self.run.bells.count(snapshot.bell_count, now);
        // Without a bell counter, the flag is the only signal.
        if flag_rose && self.run.id.is_none() && snapshot.bell_count == 0 {
            self.run.bells.count(self.run.bells.counted + 1, now);
        }
    }

    pub(super) fn next_tick_at(&self) -> Option<Timestamp> {
        let of_bell = self.run.bells.since.and_then(|since| since.checked_add(BELL_HOLD).ok());
        of_bell.into_iter().chain(self.run.exit_due_at()).min()
    }

    pub(super) fn next_snapshot_at(&self) -> Option<Timestamp> {
        match self.run.phase {
            RunPhase::ExitPending { since, .. } => Some(since),
            RunPhase::Live => self.prompt.next_snapshot_at(),
            RunPhase::Closed => None,
        }
    }
}
