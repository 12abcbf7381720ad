//! Looks and facts in, events out.
//!
//! The machine of one task session. It can be stored and go on after a restart: what was told is not told again, and what happened
//! meanwhile is.

mod apply;
mod event_writer;
mod prompt_tracker;
mod run_memory;
mod slot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use self::run_memory::RunMemory;
use self::slot::{RunPhase, TaskSlot};
use super::event::TaskEvent;
use super::input::TaskInput;
use super::run::RunId;
use super::session::TaskSessionName;
use crate::ids::{Generation, PaneId, WindowId};

/// A bell is held back so long: if the task ends meanwhile, both are told in one sentence.
pub const BELL_HOLD: SignedDuration = SignedDuration::from_millis(40);

/// The end of a run waits so long for the look that tells whether its window is still there.
pub const EXIT_HOLD: SignedDuration = SignedDuration::from_secs(1);

/// A pane is dead when its terminal is closed; its process may go on for a while, and only then tmux knows how it ended.
const UNKNOWN_EXIT_HOLD: SignedDuration = SignedDuration::from_secs(5);

/// Two looks that show the same prompt are at least so far apart.
pub const PROMPT_STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

/// What we said we would take away is ours no longer if it is still there after this time.
const REMOVAL_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMachine {
    session: TaskSessionName,
    server: Option<Generation>,
    /// Whether there was a look already: the first one is the baseline.
    #[serde(alias = "looked")]
    has_baseline: bool,
    slots: BTreeMap<WindowId, TaskSlot>,
    memory: RunMemory,
}

impl TaskMachine {
    pub fn new(session: TaskSessionName) -> Self {
        Self { session, server: None, has_baseline: false, slots: BTreeMap::new(), memory: RunMemory::default() }
    }

    pub fn session(&self) -> &TaskSessionName {
        &self.session
    }

    /// The only way anything changes. The events are in the order in which they happened.
    pub fn apply(&mut self, input: TaskInput, now: Timestamp) -> Vec<TaskEvent> {
        let mut told = Vec::new();
        match input {
            TaskInput::Snapshot(look) => self.apply_snapshot(look, now, &mut told),
            TaskInput::Started(launch) => self.started(launch, now, &mut told),
            TaskInput::Exited { run, exit, bells, output } => {
                self.exited(&run, exit, bells, &output, now, &mut told);
                self.drop_own_exit(&run);
            }
            TaskInput::ExitConfirmed { run, exit, bells, output } => {
                self.exited(&run, exit, bells, &output, now, &mut told);
                self.confirm_exit(&run, now, &mut told);
            }
            TaskInput::BellRang { run, bells, output } => self.bell_rang(&run, bells, &output, now, &mut told),
            TaskInput::RemovalPlanned(ending) => self.plan_removal(ending, now, &mut told),
            TaskInput::Tick => self.tick(now, &mut told),
        }
        told
    }

    /// When [`TaskInput::TimePassed`] is to be told, if nothing else happens.
    pub fn next_tick_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(TaskSlot::next_tick_at).min()
    }

    /// When a look is wanted: one that finds out what became of a window, or whether a prompt stands.
    pub fn next_snapshot_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(TaskSlot::next_snapshot_at).min()
    }

    /// The prompt at which the task in this window waits, if that was told.
    pub fn open_prompt(&self, window: WindowId) -> Option<&str> {
        self.slots.get(&window).filter(|slot| slot.run.phase == RunPhase::Live)?.prompt.reported_prompt()
    }

    /// How often the run in this window has rung.
    pub fn bell_count(&self, window: WindowId) -> u64 {
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
        let runs = self.slots.values().flat_map(|slot| [&slot.run].into_iter().chain(&slot.earlier_runs));
        runs.filter_map(|run| run.id.as_ref())
    }

    /// Whether the end of this run is still to be told.
    pub fn awaits_exit(&self, run: &RunId) -> bool {
        let runs = self.slots.values().flat_map(|slot| [&slot.run].into_iter().chain(&slot.earlier_runs));
        runs.into_iter().any(|known| known.id.as_ref() == Some(run) && known.phase != RunPhase::Closed)
    }

    /// Whether the end of this run was told, or need not be. One that the first look found is not meant: if it turns out to be a
    /// launch of ours, it is told from its start.
    pub fn has_ended(&self, run: &RunId) -> bool {
        let found = |slot: &TaskSlot| slot.run.in_baseline && slot.run.id.as_ref() == Some(run);
        self.knows_run(run) && !self.awaits_exit(run) && !self.slots.values().any(found)
    }

    /// Whether how the run in this window ended is known, told or not: a look would show no more of it.
    pub fn exit_is_known(&self, window: WindowId) -> bool {
        self.slots.get(&window).is_some_and(|slot| slot.run.phase != RunPhase::Live && !slot.run.exit_is_unknown())
    }

    /// Whether the end of this run was told, and no look has shown its pane dead yet: tmux will show that in a moment.
    pub fn has_just_ended(&self, run: &RunId) -> bool {
        let is_it = |slot: &TaskSlot| slot.run.id.as_ref() == Some(run) && slot.run.phase == RunPhase::Closed;
        self.slots.values().any(|slot| is_it(slot) && !slot.run.seen_dead)
    }

    /// Whether it knows of no window.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether any task of the session lives, as far as is known.
    pub fn has_live_tasks(&self) -> bool {
        self.slots.values().any(|slot| slot.run.phase == RunPhase::Live)
    }
}
