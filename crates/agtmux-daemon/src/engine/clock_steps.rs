//! Adjusts the engine to the clock: moves all known times when the clock is set, and does not count the time during
//! which the machine slept.

use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use jiff::{SignedDuration, Timestamp};

use super::{Engine, EngineStep};
use crate::store::StoreChange;

impl Engine {
    /// Begins to process a batch of inputs. First adjusts all known times to the clock.
    pub(super) fn begin_step(&mut self) -> EngineStep {
        let slept = self.sleep_detector.slept();
        let (now, stepped) = self.clock.now_and_step();
        let mut step = EngineStep::new(now, self.event_log.read().seq());
        if let Some(by) = stepped {
            tracing::info!(by = %by, "the clock of this machine was set");
            self.apply_clock_step(by, &mut step);
        }
        if let Some(by) = slept {
            tracing::info!(by = %by, "this machine slept, or the daemon was stopped");
            self.skip_time(by, &mut step);
        }
        step
    }

    /// If the clock was set since the stored times were recorded, moves these times. Also stores the current clock
    /// setting.
    pub(super) fn apply_stored_clock_step(&mut self, step: &mut EngineStep) {
        step.stores_clock = true;
        if !self.step_at_start.is_zero() {
            tracing::info!(by = %self.step_at_start, "the clock of this machine was set while no daemon ran");
            self.apply_clock_step(self.step_at_start, step);
        }
    }

    fn apply_clock_step(&mut self, by: SignedDuration, step: &mut EngineStep) {
        let now = step.now;
        self.resolve(ResolverInput::ClockStepped { by }, None, step);
        self.fleet.shift_clock(by, now);
        self.ended_processes.shift_clock(by);
        self.turn_starts.shift_clock(by);
        self.submissions.shift_clock(by);
        self.cursors.shift_clock(by, now);
        self.unbound_events.shift_clock(by, now);
        for (runtime, memory) in self.memories.shift_clock(by, now) {
            step.changes.push(StoreChange::PutMemory { runtime, memory: Box::new(memory) });
        }
        let moved = |at: Timestamp| at.checked_add(by).unwrap_or(now);
        (self.purge_at, self.last_step_at) = (moved(self.purge_at), moved(self.last_step_at));
        // The deadlines moved, too, so check them all in this step.
        self.deadline = Timestamp::MIN;
        self.unstored_step += by;
        step.stores_clock = true;
        self.publish_all_again(step);
    }

    /// Publishes and stores the moved times of all agents. Also requests new captures of their panes, because captures
    /// in progress still have times from before the clock was set.
    fn publish_all_again(&mut self, step: &mut EngineStep) {
        let runtimes: Vec<RuntimeId> = self.runtime_panes.keys().cloned().collect();
        for runtime in &runtimes {
            if let Some(pane) = self.runtime_panes.get(runtime) {
                step.mark_pane_changed(&self.fleet, pane);
            }
            self.request_recheck(runtime);
        }
        step.changed_states.extend(runtimes.iter().cloned());
        step.changed_evidence.extend(runtimes);
    }

    fn skip_time(&mut self, by: SignedDuration, step: &mut EngineStep) {
        self.resolve(ResolverInput::TimeSkipped { by }, None, step);
        self.unbound_events.skip_time(by, step.now);
        self.submissions.skip_time(by);
        for (runtime, memory) in self.memories.skip_time(by) {
            step.changes.push(StoreChange::PutMemory { runtime, memory: Box::new(memory) });
        }
    }

    /// The corrected time of an event that waited in the spool. If the clock was set before this daemon started, the
    /// event may have been dated by the old clock. Uncorrected, its time would be in the future, or too old by the
    /// amount that the clock was set forward.
    pub(super) fn spooled_time(&self, at: Timestamp, now: Timestamp) -> Timestamp {
        let moved = at.checked_add(self.step_at_start).unwrap_or(now);
        let is_from_before = if self.step_at_start.is_negative() { at > now } else { moved <= now };
        if is_from_before { moved.min(now) } else { at.min(now) }
    }
}
