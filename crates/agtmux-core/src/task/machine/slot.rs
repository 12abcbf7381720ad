//! One window of the session, and the run in it.

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
    /// Runs that made place for another one before their end was told.
    #[serde(alias = "past")]
    pub(super) earlier_runs: Vec<RunState>,
    #[serde(alias = "taken")]
    pub(super) removal: Option<Removal>,
    #[serde(alias = "question")]
    pub(super) prompt: PromptTracker,
    /// tmux's flag, as it was seen last. It counts only where nobody counts bells.
    pub(super) bell_flag: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunState {
    /// None for a window that was not launched as a task.
    pub(super) id: Option<RunId>,
    pub(super) phase: RunPhase,
    pub(super) bells: BellState,
    /// The last useful lines that were heard of.
    pub(super) output: Vec<String>,
    /// Whether a look has shown its pane dead.
    pub(super) seen_dead: bool,
    /// It was there at the first look, so its start was not told.
    #[serde(alias = "found")]
    pub(super) in_baseline: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunPhase {
    Live,
    /// It ended; what became of its window is not known yet.
    #[serde(alias = "Ending")]
    ExitPending {
        exit: TaskExit,
        since: Timestamp,
    },
    /// It ended, and nothing more is to be told of that.
    #[serde(alias = "Over")]
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct BellState {
    pub(super) counted: u64,
    #[serde(alias = "told")]
    pub(super) reported: u64,
    /// Since when there is one that was not told.
    pub(super) since: Option<Timestamp>,
}

/// What we are about to do with it ourselves.
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
    /// `total` since the run began. A smaller number is an old one.
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
        }
    }

    pub(super) fn apply_facts(&mut self, heard: RunFacts, now: Timestamp) {
        self.bells.count(heard.bells, now);
        if !heard.output.is_empty() {
            self.output = heard.output;
        }
        if let (Some(exit), RunPhase::Live) = (heard.exit, &self.phase) {
            self.phase = RunPhase::ExitPending { exit, since: now };
        }
    }

    /// tmux shows a pane dead a moment before it knows how its program ended: the next look may tell.
    pub(super) fn record_exit(&mut self, seen: TaskExit, now: Timestamp) {
        match &mut self.phase {
            RunPhase::Live => self.phase = RunPhase::ExitPending { exit: seen, since: now },
            RunPhase::ExitPending { exit, .. } if *exit == TaskExit::UNKNOWN => *exit = seen,
            RunPhase::ExitPending { .. } | RunPhase::Closed => {}
        }
    }

    /// When its end is told though no look has told more of it.
    pub(super) fn exit_due_at(&self) -> Option<Timestamp> {
        let RunPhase::ExitPending { exit, since } = self.phase else { return None };
        since.checked_add(if exit == TaskExit::UNKNOWN { UNKNOWN_EXIT_HOLD } else { EXIT_HOLD }).ok()
    }

    pub(super) fn exit_is_unknown(&self) -> bool {
        matches!(self.phase, RunPhase::ExitPending { exit: TaskExit::UNKNOWN, .. })
    }
}

impl TaskSlot {
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

    /// As it was found at the first look: nothing of it is told.
    pub(super) fn from_baseline(look: &TaskSnapshot) -> Self {
        let mut slot = Self::new(look.window_name.clone(), look.pane_id, RunState::new(look.run.clone()));
        let count = look.bell_count.max(u64::from(look.bell && look.run.is_none()));
        slot.run.bells = BellState { counted: count, reported: count, since: None };
        slot.bell_flag = look.bell;
        slot.run.in_baseline = true;
        if look.pane_state_known && look.dead {
            slot.run.phase = RunPhase::Closed;
            slot.run.seen_dead = true;
        }
        slot
    }

    pub(super) fn set_removal(&mut self, how: RemovalKind, now: Timestamp) {
        self.removal = Some(Removal { kind: how, at: now });
    }

    /// It is still there long after we said we would take it away: that did not work.
    pub(super) fn expire_removal(&mut self, now: Timestamp) {
        self.removal.take_if(|taken| now.duration_since(taken.at) > REMOVAL_TIMEOUT);
    }

    /// How often it has rung, as a look shows it.
    pub(super) fn count_bells(&mut self, look: &TaskSnapshot, now: Timestamp) {
        let flag_rose = look.bell && !self.bell_flag;
        self.bell_flag = look.bell;
        self.run.bells.count(look.bell_count, now);
        // Nobody counts here: the flag is all there is.
        if flag_rose && self.run.id.is_none() && look.bell_count == 0 {
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
