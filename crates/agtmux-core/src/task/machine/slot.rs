//! One window of the session, and the run in it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::exit::Exit;
use super::super::look::TaskLook;
use super::super::run::RunId;
use super::memory::Heard;
use super::question::Question;
use super::{BELL_WAITS, EXIT_WAITS, TAKING_LASTS, UNKNOWN_WAITS};
use crate::ids::PaneId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) task: String,
    pub(super) pane: Option<PaneId>,
    pub(super) run: Run,
    /// Runs that made place for another one before their end was told.
    pub(super) past: Vec<Run>,
    pub(super) taken: Option<Taken>,
    pub(super) question: Question,
    /// tmux's flag, as it was seen last. It counts only where nobody counts bells.
    pub(super) bell_flag: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    /// None for a window that was not launched as a task.
    pub(super) id: Option<RunId>,
    pub(super) phase: Phase,
    pub(super) bells: Bells,
    /// The last useful lines that were heard of.
    pub(super) output: Vec<String>,
    /// Whether a look has shown its pane dead.
    pub(super) seen_dead: bool,
    /// It was there at the first look, so its start was not told.
    pub(super) found: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    Live,
    /// It ended; what became of its window is not known yet.
    Ending {
        exit: Exit,
        since: Timestamp,
    },
    /// It ended, and nothing more is to be told of that.
    Over,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Bells {
    pub(super) counted: u64,
    pub(super) told: u64,
    /// Since when there is one that was not told.
    pub(super) since: Option<Timestamp>,
}

/// What we are about to do with it ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) how: Taking,
    pub(super) at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Taking {
    Pruned,
    KilledAll,
    Replaced,
    Stopped { by_user: bool },
}

impl Bells {
    /// `total` since the run began. A smaller number is an old one.
    pub(super) fn count(&mut self, total: u64, now: Timestamp) {
        if total > self.counted {
            self.counted = total;
        }
        if self.counted > self.told && self.since.is_none() {
            self.since = Some(now);
        }
    }

    pub(super) fn are_new(&self) -> bool {
        self.counted > self.told
    }
}

impl Run {
    pub(super) fn new(id: Option<RunId>) -> Self {
        Self { id, phase: Phase::Live, bells: Bells::default(), output: Vec::new(), seen_dead: false, found: false }
    }

    pub(super) fn hear(&mut self, heard: Heard, now: Timestamp) {
        self.bells.count(heard.bells, now);
        if !heard.output.is_empty() {
            self.output = heard.output;
        }
        if let (Some(exit), Phase::Live) = (heard.exit, &self.phase) {
            self.phase = Phase::Ending { exit, since: now };
        }
    }

    /// tmux shows a pane dead a moment before it knows how its program ended: the next look may tell.
    pub(super) fn end_as_seen(&mut self, seen: Exit, now: Timestamp) {
        match &mut self.phase {
            Phase::Live => self.phase = Phase::Ending { exit: seen, since: now },
            Phase::Ending { exit, .. } if *exit == Exit::UNKNOWN => *exit = seen,
            Phase::Ending { .. } | Phase::Over => {}
        }
    }

    /// When its end is told though no look has told more of it.
    pub(super) fn end_is_told_at(&self) -> Option<Timestamp> {
        let Phase::Ending { exit, since } = self.phase else { return None };
        since.checked_add(if exit == Exit::UNKNOWN { UNKNOWN_WAITS } else { EXIT_WAITS }).ok()
    }

    pub(super) fn ends_unknown(&self) -> bool {
        matches!(self.phase, Phase::Ending { exit: Exit::UNKNOWN, .. })
    }
}

impl Slot {
    pub(super) fn new(task: String, pane: Option<PaneId>, run: Run) -> Self {
        Self { task, pane, run, past: Vec::new(), taken: None, question: Question::default(), bell_flag: false }
    }

    /// As it was found at the first look: nothing of it is told.
    pub(super) fn found(look: &TaskLook) -> Self {
        let mut slot = Self::new(look.window_name.clone(), look.pane_id, Run::new(look.run.clone()));
        let count = look.bell_count.max(u64::from(look.bell && look.run.is_none()));
        slot.run.bells = Bells { counted: count, told: count, since: None };
        slot.bell_flag = look.bell;
        slot.run.found = true;
        if look.pane_state_known && look.dead {
            slot.run.phase = Phase::Over;
            slot.run.seen_dead = true;
        }
        slot
    }

    pub(super) fn take(&mut self, how: Taking, now: Timestamp) {
        self.taken = Some(Taken { how, at: now });
    }

    /// It is still there long after we said we would take it away: that did not work.
    pub(super) fn forget_taking(&mut self, now: Timestamp) {
        self.taken.take_if(|taken| now.duration_since(taken.at) > TAKING_LASTS);
    }

    /// How often it has rung, as a look shows it.
    pub(super) fn count_bells(&mut self, look: &TaskLook, now: Timestamp) {
        let flag_rose = look.bell && !self.bell_flag;
        self.bell_flag = look.bell;
        self.run.bells.count(look.bell_count, now);
        // Nobody counts here: the flag is all there is.
        if flag_rose && self.run.id.is_none() && look.bell_count == 0 {
            self.run.bells.count(self.run.bells.counted + 1, now);
        }
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let of_bell = self.run.bells.since.and_then(|since| since.checked_add(BELL_WAITS).ok());
        of_bell.into_iter().chain(self.run.end_is_told_at()).min()
    }

    pub(super) fn looks_at(&self) -> Option<Timestamp> {
        match self.run.phase {
            Phase::Ending { since, .. } => Some(since),
            Phase::Live => self.question.looks_at(),
            Phase::Over => None,
        }
    }
}
