//! Ends a step of the engine: stores its changes, then publishes them.

use std::sync::PoisonError;

use jiff::SignedDuration;

use super::Engine;
use super::step::EngineStep;
use crate::store::{StoreChange, StoreError};
use crate::view::FleetView;

/// How many sequence numbers the engine reserves in the store beyond those that it needs now. Most steps then need no
/// new reservation.
const SEQ_BLOCK: u64 = 10_000;

impl Engine {
    pub(super) fn checkpoint(&mut self, step: &mut EngineStep, after_loss: bool) {
        self.checkpoint_seq = self.last_input_seq;
        let resolver = Box::new(self.states.clone());
        step.changes.push(StoreChange::Checkpoint {
            input_seq: self.last_input_seq,
            at: step.now,
            resolver,
            after_loss,
        });
    }

    pub(super) async fn finish(&mut self, mut step: EngineStep) {
        self.last_step_at = step.now;
        let stored = self.commit(&mut step).await;
        if stored.is_ok() {
            self.task_sessions.replace(std::mem::take(&mut step.task_sessions));
        }
        // Notify the task follower after the sessions are replaced, because the follower checks only sessions that
        // `task_sessions` contains.
        for session in std::mem::take(&mut step.task_sessions_to_check) {
            let _ = self.task_session_changed.send(session);
        }
        if !step.delta.is_empty() || !step.targets.is_empty() || step.seq > self.event_log.read().seq() {
            let task_events = step.take_task_events(stored.is_ok());
            let targets = std::mem::take(&mut step.targets);
            let update_view = |view: &mut FleetView| {
                let mut events =
                    view.apply(&self.fleet, &self.states, &self.submissions, &self.mirror_panes, &step.delta);
                events.extend(view.apply_targets(targets, step.now));
                events
            };
            self.event_log.publish(step.now, step.seq, task_events, update_view);
        }
        self.notify_subscribers(&step);
        step.send_replies(stored);
    }

    async fn commit(&mut self, step: &mut EngineStep) -> Result<(), StoreError> {
        let failed_before = self.store_error().is_some();
        let mut changes = Vec::new();
        // The clock step comes first, because it moves the stored times. The other changes already have the new time.
        if step.stores_clock || failed_before {
            let (by, now, anchor) = (self.unstored_step, step.now, self.clock.anchor());
            changes.push(StoreChange::SetClock { by, now, anchor });
        }
        changes.extend(self.fleet_diff.changes(&self.fleet, &step.delta, step.now));
        if failed_before {
            // After a failed write the stored data is out of date. Write everything, and start a new input log here.
            changes.extend(self.fleet_diff.all_changes(&self.fleet, step.now));
            step.changed_states.extend(self.runtime_panes.keys().cloned());
            self.checkpoint(step, true);
        }
        changes.append(&mut step.changes);
        for runtime in &step.changed_states {
            if let (Some(pane), Some(record)) = (self.runtime_panes.get(runtime), self.states.state(runtime)) {
                changes.push(StoreChange::PutState {
                    pane: pane.clone(),
                    runtime: runtime.clone(),
                    record: record.clone(),
                });
            }
        }
        let reserve =
            (step.seq + step.max_new_seqs() >= self.reserved_seq).then(|| step.seq + step.max_new_seqs() + SEQ_BLOCK);
        if changes.is_empty() && reserve.is_none() {
            return Ok(());
        }
        changes.extend(reserve.map(StoreChange::ReserveSeq));
        let outcome = self.store.commit(changes).await;
        match &outcome {
            Ok(()) => {
                self.reserved_seq = reserve.unwrap_or(self.reserved_seq);
                self.unstored_step = SignedDuration::ZERO;
                if failed_before {
                    tracing::info!("the database accepts writes again");
                }
                self.set_store_error(None);
            }
            // Observed changes are shown even if they cannot be stored; the health report contains the error.
            Err(error) => {
                if !failed_before {
                    tracing::error!(%error, "changes are shown but not stored");
                }
                self.set_store_error(Some(error.to_string()));
            }
        }
        outcome
    }

    fn store_error(&self) -> Option<String> {
        self.store_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_store_error(&self, note: Option<String>) {
        *self.store_error.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }
}
