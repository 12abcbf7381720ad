//! The one place where the fleet changes: observations in, then the store, then everyone who watches.

use std::sync::Arc;

use agtmux_core::fleet::{Delta, Fleet, Observation};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::recorder::Recorder;
use crate::shared::Shared;
use crate::store::{Change, Store};

/// Sequence numbers are reserved in blocks, so that most changes need no write for theirs.
const SEQ_BLOCK: u64 = 10_000;

/// How many waiting observations share a transaction.
const BATCH: usize = 256;

#[derive(Debug)]
pub(crate) enum Input {
    Observed(Observation),
    /// Answered when everything before it has been applied and published.
    Settle(oneshot::Sender<()>),
}

/// The way in. It waits when the engine is behind: nothing is dropped.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandle(mpsc::Sender<Input>);

impl EngineHandle {
    pub(crate) async fn observe(&self, observation: Observation) {
        // The engine outlives its observers but for the last moments of a shutdown.
        let _ = self.0.send(Input::Observed(observation)).await;
    }

    pub(crate) async fn settle(&self) {
        let (done, settled) = oneshot::channel();
        if self.0.send(Input::Settle(done)).await.is_ok() {
            let _ = settled.await;
        }
    }
}

pub(crate) struct Engine {
    fleet: Fleet,
    recorder: Recorder,
    store: Arc<Store>,
    store_error: StoreErrorNote,
    shared: Arc<Shared>,
    reserved: u64,
    inputs: mpsc::Receiver<Input>,
}

/// Why nothing can be stored, for the health report.
pub(crate) type StoreErrorNote = Arc<std::sync::Mutex<Option<String>>>;

impl Engine {
    pub(crate) fn new(
        fleet: Fleet,
        store: Arc<Store>,
        store_error: StoreErrorNote,
        shared: Arc<Shared>,
    ) -> (Self, EngineHandle) {
        let (inputs, received) = mpsc::channel(1024);
        let reserved = shared.read().seq();
        let engine =
            Self { fleet, recorder: Recorder::default(), store, store_error, shared, reserved, inputs: received };
        (engine, EngineHandle(inputs))
    }

    /// Runs until every handle is gone.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.inputs.recv_many(&mut batch, BATCH).await > 0 {
            let now = Timestamp::now();
            let mut delta = Delta::default();
            let mut waiting = Vec::new();
            for input in batch.drain(..) {
                match input {
                    Input::Observed(observation) => merge(&mut delta, self.fleet.apply(observation, now)),
                    Input::Settle(done) => waiting.push(done),
                }
            }
            if !delta.is_empty() {
                self.commit(&delta, now).await;
                self.shared.publish(now, |view| view.follow(&self.fleet, &delta));
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    async fn commit(&mut self, delta: &Delta, now: Timestamp) {
        let failed_before = self.note().is_some();
        let mut changes = if failed_before {
            // What is stored is out of date: write all of it, and the endings that this batch brought.
            let mut all = self.recorder.changes(&self.fleet, delta, now);
            all.extend(self.recorder.all(&self.fleet, now));
            all
        } else {
            self.recorder.changes(&self.fleet, delta, now)
        };
        // Each pane of the delta makes a few events at most; the block leaves room for all of them.
        let room = (delta.changed.len() + delta.removed.len() + delta.windows.len() + delta.sessions.len()) as u64 * 8;
        let reserve =
            (self.shared.read().seq() + room >= self.reserved).then(|| self.shared.read().seq() + room + SEQ_BLOCK);
        changes.extend(reserve.map(Change::ReserveSeq));
        if changes.is_empty() {
            return;
        }
        match self.store.commit(changes).await {
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
    }

    fn note(&self) -> Option<String> {
        self.store_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn set_note(&self, note: Option<String>) {
        *self.store_error.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = note;
    }
}

/// Readers look at the fleet for what became of a pane, so it does not matter that it may be in two sets.
fn merge(into: &mut Delta, from: Delta) {
    into.changed.extend(from.changed);
    into.removed.extend(from.removed);
    into.servers.extend(from.servers);
    into.windows.extend(from.windows);
    into.sessions.extend(from.sessions);
    into.ended.extend(from.ended);
    into.targets_changed |= from.targets_changed;
}
