//! Looks and facts in, events out.
//!
//! The machine of one task session. It can be stored and go on after a restart: what was told is not told again, and what happened
//! meanwhile is.

mod apply;
mod memory;
mod question;
mod slot;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use self::memory::Memory;
use self::slot::{Phase, Slot};
use super::event::TaskEvent;
use super::input::TaskInput;
use super::run::RunId;
use super::session::TaskSession;
use crate::ids::{Generation, PaneId, WindowId};

/// A bell is held back so long: if the task ends meanwhile, both are told in one sentence.
pub const BELL_WAITS: SignedDuration = SignedDuration::from_millis(40);

/// The end of a run waits so long for the look that tells whether its window is still there.
pub const EXIT_WAITS: SignedDuration = SignedDuration::from_secs(1);

/// A pane is dead when its terminal is closed; its process may go on for a while, and only then tmux knows how it ended.
const UNKNOWN_WAITS: SignedDuration = SignedDuration::from_secs(5);

/// Two looks that show the same prompt are at least so far apart.
pub const PROMPT_STANDS: SignedDuration = SignedDuration::from_millis(300);

/// What we said we would take away is ours no longer if it is still there after this time.
const TAKING_LASTS: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMachine {
    session: TaskSession,
    server: Option<Generation>,
    /// Whether there was a look already: the first one is the baseline.
    looked: bool,
    slots: BTreeMap<WindowId, Slot>,
    memory: Memory,
}

impl TaskMachine {
    pub fn new(session: TaskSession) -> Self {
        Self { session, server: None, looked: false, slots: BTreeMap::new(), memory: Memory::default() }
    }

    pub fn session(&self) -> &TaskSession {
        &self.session
    }

    /// The only way anything changes. The events are in the order in which they happened.
    pub fn apply(&mut self, input: TaskInput, now: Timestamp) -> Vec<TaskEvent> {
        let mut told = Vec::new();
        match input {
            TaskInput::Looked(look) => self.looked(look, now, &mut told),
            TaskInput::Started(launch) => self.started(launch, now, &mut told),
            TaskInput::Exited { run, exit, bells, output } => {
                self.exited(&run, exit, bells, &output, now, &mut told);
                self.ended_by_us(&run);
            }
            TaskInput::Finished { run, exit, bells, output } => {
                self.exited(&run, exit, bells, &output, now, &mut told);
                self.finished(&run, now, &mut told);
            }
            TaskInput::Rang { run, bells, output } => self.rang(&run, bells, &output, now, &mut told),
            TaskInput::Ending(ending) => self.ending(ending, now, &mut told),
            TaskInput::TimePassed => self.time_passed(now, &mut told),
        }
        told
    }

    /// When [`TaskInput::TimePassed`] is to be told, if nothing else happens.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(Slot::wakes_at).min()
    }

    /// When a look is wanted: one that finds out what became of a window, or whether a prompt stands.
    pub fn looks_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(Slot::looks_at).min()
    }

    /// The prompt at which the task in this window waits, if that was told.
    pub fn asks(&self, window: WindowId) -> Option<&str> {
        self.slots.get(&window).filter(|slot| slot.run.phase == Phase::Live)?.question.told_prompt()
    }

    /// How often the run in this window has rung.
    pub fn bells(&self, window: WindowId) -> u64 {
        self.slots.get(&window).map_or(0, |slot| slot.run.bells.counted)
    }

    /// The life of the server in which its windows are.
    pub fn server(&self) -> Option<Generation> {
        self.server
    }

    /// Whether a task that it knows of has this pane.
    pub fn has_pane(&self, pane: PaneId) -> bool {
        self.slots.values().any(|slot| slot.pane == Some(pane))
    }

    /// Runs of windows that are there, over or not.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        let runs = self.slots.values().flat_map(|slot| [&slot.run].into_iter().chain(&slot.past));
        runs.filter_map(|run| run.id.as_ref())
    }

    /// Whether the end of this run is still to be told.
    pub fn awaits_end(&self, run: &RunId) -> bool {
        let runs = self.slots.values().flat_map(|slot| [&slot.run].into_iter().chain(&slot.past));
        runs.into_iter().any(|known| known.id.as_ref() == Some(run) && known.phase != Phase::Over)
    }

    /// Whether the end of this run was told, or need not be. One that the first look found is not meant: if it turns out to be a
    /// launch of ours, it is told from its start.
    pub fn has_ended(&self, run: &RunId) -> bool {
        let found = |slot: &Slot| slot.run.found && slot.run.id.as_ref() == Some(run);
        self.knows(run) && !self.awaits_end(run) && !self.slots.values().any(found)
    }

    /// Whether how the run in this window ended is known, told or not: a look would show no more of it.
    pub fn knows_end_in(&self, window: WindowId) -> bool {
        self.slots.get(&window).is_some_and(|slot| slot.run.phase != Phase::Live && !slot.run.ends_unknown())
    }

    /// Whether the end of this run was told, and no look has shown its pane dead yet: tmux will show that in a moment.
    pub fn has_just_ended(&self, run: &RunId) -> bool {
        let is_it = |slot: &Slot| slot.run.id.as_ref() == Some(run) && slot.run.phase == Phase::Over;
        self.slots.values().any(|slot| is_it(slot) && !slot.run.seen_dead)
    }

    /// Whether it knows of no window.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether any task of the session lives, as far as is known.
    pub fn has_live_tasks(&self) -> bool {
        self.slots.values().any(|slot| slot.run.phase == Phase::Live)
    }
}
