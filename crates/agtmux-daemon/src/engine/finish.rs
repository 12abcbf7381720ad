//! The end of a step: what it brought about is stored, and then told.

use std::sync::PoisonError;

use super::Engine;
use super::step::EngineStep;
use crate::store::{StoreChange, StoreError};
use crate::view::FleetView;

/// Sequence numbers are reserved in blocks, so that most changes need no write for theirs.
const SEQ_BLOCK: u64 = 10_000;

impl Engine {
    pub(super) fn checkpoint(&mut self, step: &mut EngineStep, after_loss: bool) {
        self.checkpoint_n = self.last_input_n;
        let engine = Box::new(self.states.clone());
        step.changes.push(StoreChange::Checkpoint { n: self.last_input_n, at: step.now, engine, after_loss });
    }

    pub(super) async fn finish(&mut self, mut step: EngineStep) {
        self.last_step_at = step.now;
        let stored = self.commit(&mut step).await;
        if !step.delta.is_empty() || step.seq > self.event_log.read().seq() {
            // Of tasks nothing is told that is not stored: it will be told again, with another number.
            let happened = if stored.is_ok() { step.published_task_events() } else { Vec::new() };
            let follow = |view: &mut FleetView| view.apply(&self.fleet, &self.states, &step.delta);
            self.event_log.publish(step.now, step.seq, happened, follow);
        }
        self.notify_subscribers(&step);
        step.send_replies(stored);
    }

    async fn commit(&mut self, step: &mut EngineStep) -> Result<(), StoreError> {
        let failed_before = self.store_error().is_some();
        let mut changes = self.fleet_diff.changes(&self.fleet, &step.delta, step.now);
        if failed_before {
            // What is stored is out of date: write all of it, and begin the log anew from here.
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
                if failed_before {
                    tracing::info!("the database takes writes again");
                }
                self.set_store_error(None);
            }
            // The fleet is what was observed, stored or not: what people see goes on, and health tells of it.
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
