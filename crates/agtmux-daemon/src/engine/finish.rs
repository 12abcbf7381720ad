//! The end of a step: what it brought about is stored, and then told.

use std::sync::PoisonError;

use super::Engine;
use super::step::Step;
use crate::store::{Change, StoreError};
use crate::view::View;

/// Sequence numbers are reserved in blocks, so that most changes need no write for theirs.
const SEQ_BLOCK: u64 = 10_000;

impl Engine {
    pub(super) fn checkpoint(&mut self, step: &mut Step, after_loss: bool) {
        self.checkpoint_n = self.last_n;
        let engine = Box::new(self.states.clone());
        step.changes.push(Change::Checkpoint { n: self.last_n, at: step.now, engine, after_loss });
    }

    pub(super) async fn finish(&mut self, mut step: Step) {
        self.stepped_at = step.now;
        let stored = self.commit(&mut step).await;
        if !step.delta.is_empty() || step.seq > self.shared.read().seq() {
            // Of tasks nothing is told that is not stored: it will be told again, with another number.
            let happened = if stored.is_ok() { step.task_news() } else { Vec::new() };
            let follow = |view: &mut View| view.follow(&self.fleet, &self.states, &step.delta);
            self.shared.publish(step.now, step.seq, happened, follow);
        }
        self.tell_collectors(&step);
        step.answer(stored);
    }

    async fn commit(&mut self, step: &mut Step) -> Result<(), StoreError> {
        let failed_before = self.note().is_some();
        let mut changes = self.recorder.changes(&self.fleet, &step.delta, step.now);
        if failed_before {
            // What is stored is out of date: write all of it, and begin the log anew from here.
            changes.extend(self.recorder.all(&self.fleet, step.now));
            step.restated.extend(self.homes.keys().cloned());
            self.checkpoint(step, true);
        }
        changes.append(&mut step.changes);
        for runtime in &step.restated {
            if let (Some(pane), Some(record)) = (self.homes.get(runtime), self.states.state(runtime)) {
                changes.push(Change::PutState { pane: pane.clone(), runtime: runtime.clone(), record: record.clone() });
            }
        }
        let reserve = (step.seq + step.room() >= self.reserved).then(|| step.seq + step.room() + SEQ_BLOCK);
        if changes.is_empty() && reserve.is_none() {
            return Ok(());
        }
        changes.extend(reserve.map(Change::ReserveSeq));
        let outcome = self.store.commit(changes).await;
        match &outcome {
            Ok(()) => {
                self.reserved = reserve.unwrap_or(self.reserved);
                if failed_before {
                    tracing::info!("the database takes writes again");
                }
                self.set_note(None);
            }
            // The fleet is what was observed, stored or not: what people see goes on, and health tells of it.
            Err(error) => {
                if !failed_before {
                    tracing::error!(%error, "changes are shown but not stored");
                }
                self.set_note(Some(error.to_string()));
            }
        }
        outcome
    }

    fn note(&self) -> Option<String> {
        self.store_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_note(&self, note: Option<String>) {
        *self.store_error.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }
}
