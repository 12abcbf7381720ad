//! The state machine of one task session: turns snapshots and facts into task events.
//!
//! The machine can be stored and restored. After a restart of the daemon, it reports what happened while the daemon was
//! down, and repeats no event that was already reported.

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

use self::event_writer::EventBuffer;
use self::run_memory::{RunFacts, RunMemory};
use self::slot::{RunPhase, RunState, TaskSlot};
use super::event::TaskEvent;
use super::input::TaskInput;
use super::run::RunId;
use super::session::TaskSessionName;
use crate::ids::{Generation, WindowId};

/// How long the report of a bell is delayed. If the run exits within this time, one message reports the bell and the
/// exit together.
pub const BELL_HOLD: SignedDuration = SignedDuration::from_millis(40);

/// How long the report of an exit waits for a snapshot that shows whether the window still exists. After this time, the
/// exit is reported without a snapshot.
pub const EXIT_HOLD: SignedDuration = SignedDuration::from_secs(1);

/// How long the report of an exit waits for an exit status that is not known yet. tmux shows a pane as dead once its
/// terminal is closed, but it knows the exit status only when the process ends.
const UNKNOWN_EXIT_HOLD: SignedDuration = SignedDuration::from_secs(5);

/// A prompt is reported only if two snapshots that are at least this far apart show it unchanged.
pub const PROMPT_STABLE_FOR: SignedDuration = SignedDuration::from_millis(300);

/// If a window still exists this long after its removal was planned, the plan is dropped.
const REMOVAL_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// The state machine of one task session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMachine {
    session: TaskSessionName,
    server: Option<Generation>,
    /// Whether the first snapshot, the baseline, has been applied.
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

    /// Applies an input and returns the resulting events in order. This is the only way the machine changes.
    pub fn apply(&mut self, input: TaskInput, now: Timestamp) -> Vec<TaskEvent> {
        let mut events = EventBuffer { session: self.session.clone(), now, events: Vec::new() };
        // If the clock was set back, recorded times may lie in the future. Limit them to `now`, so that no delay lasts
        // until the clock reaches the old time again.
        let times = self.slots.values_mut().flat_map(TaskSlot::times_mut);
        times.for_each(|at| *at = (*at).min(now));
        match input {
            TaskInput::Snapshot(snapshot) => self.apply_snapshot(snapshot, &mut events),
            TaskInput::Started(launch) => self.started(launch, &mut events),
            TaskInput::Exited { run, exit, bells, output } => {
                self.apply_facts(&run, RunFacts::new(Some(exit), bells, &output), &mut events);
                self.drop_own_exit(&run);
            }
            TaskInput::ExitConfirmed { run, exit, bells, output } => {
                self.apply_facts(&run, RunFacts::new(Some(exit), bells, &output), &mut events);
                self.confirm_exit(&run, &mut events);
            }
            TaskInput::BellRang { run, bells, output } => {
                self.apply_facts(&run, RunFacts::new(None, bells, &output), &mut events);
            }
            TaskInput::RemovalPlanned(ending) => self.plan_removal(ending, &mut events),
            TaskInput::Tick => self.tick(&mut events),
        }
        events.events
    }

    /// When [`TaskInput::Tick`] is due if no other input arrives.
    pub fn next_tick_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(TaskSlot::next_tick_at).min()
    }

    /// When the machine next needs a snapshot, to see whether a window still exists or whether a prompt is stable.
    pub fn next_snapshot_at(&self) -> Option<Timestamp> {
        self.slots.values().filter_map(TaskSlot::next_snapshot_at).min()
    }

    /// The prompt at which the task in this window waits, if this prompt was already reported.
    pub fn open_prompt(&self, window: WindowId) -> Option<&str> {
        self.slots.get(&window).filter(|slot| slot.run.phase == RunPhase::Live)?.prompt.reported_prompt()
    }

    /// The number of bells of the run in this window.
    pub fn bell_count(&self, window: WindowId) -> u64 {
        self.slots.get(&window).map_or(0, |slot| slot.run.bells.counted)
    }

    /// The tmux server generation of the windows.
    pub fn server(&self) -> Option<Generation> {
        self.server
    }

    /// All runs in windows that still exist, including runs that have ended.
    pub fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.run_states().filter_map(|run| run.id.as_ref())
    }

    fn run_states(&self) -> impl Iterator<Item = &RunState> {
        self.slots.values().flat_map(|slot| [&slot.run].into_iter().chain(&slot.earlier_runs))
    }

    /// Whether the exit of this run is still to be reported.
    pub fn awaits_exit(&self, run: &RunId) -> bool {
        self.run_states().any(|known| known.id.as_ref() == Some(run) && known.phase != RunPhase::Closed)
    }

    /// Whether the exit of this run was reported or needs no report. Returns false for a run that is known only from
    /// the first snapshot: if the launch of that run arrives later, the machine still reports all events of the run.
    pub fn has_ended(&self, run: &RunId) -> bool {
        let found = |slot: &TaskSlot| slot.run.in_baseline && slot.run.id.as_ref() == Some(run);
        self.knows_run(run) && !self.awaits_exit(run) && !self.slots.values().any(found)
    }

    /// Whether the run in this window has ended and its exit status is known. The exit may not have been reported yet.
    /// If this returns true, a further snapshot adds nothing.
    pub fn exit_is_known(&self, window: WindowId) -> bool {
        self.slots.get(&window).is_some_and(|slot| slot.run.phase != RunPhase::Live && !slot.run.exit_is_unknown())
    }

    /// Whether the exit of this run was reported but no snapshot has shown the pane of the run as dead yet.
    pub fn has_just_ended(&self, run: &RunId) -> bool {
        let is_it = |slot: &TaskSlot| slot.run.id.as_ref() == Some(run) && slot.run.phase == RunPhase::Closed;
        self.slots.values().any(|slot| is_it(slot) && !slot.run.seen_dead)
    }

    /// Whether the machine knows no window of the session.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
