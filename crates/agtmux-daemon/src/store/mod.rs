//! The SQLite database. Only one thread writes. It commits each batch completely or not at all.

pub(crate) mod actions;
pub(crate) mod agents;
mod clock;
mod cursors;
pub(crate) mod events;
mod insert;
pub(crate) mod log;
mod memories;
#[cfg(test)]
mod migration_tests;
mod open;
pub(crate) mod past_runtimes;
mod rows;
pub(crate) mod schema;
pub(crate) mod targets;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use agtmux_agents::native::AdapterMemory;
use agtmux_core::fleet::Fleet;
use agtmux_core::resolver::StateResolver;
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::clock::ClockAnchor;

pub(crate) use actions::{ActionRow, SnapshotRow};
pub(crate) use agents::{ReportedAgentRow, TurnRow};
pub(crate) use cursors::SourceCursor;
pub(crate) use events::{EventRow, StoredSender};
pub(crate) use log::LoggedInput;
pub use open::StoreError;
pub(crate) use rows::{PaneRecord, StoreChange};
pub(crate) use tasks::{TaskArchive, TaskRunRow, TaskSession, TaskSessionKey};

/// The handle of the writer thread. Dropping the handle waits until all queued batches are written.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    quarantined: Option<PathBuf>,
    writer: mpsc::Sender<WriteJob>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct WriteJob {
    changes: Vec<StoreChange>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// The stored data that the daemon reads when it starts.
#[derive(Debug)]
pub(crate) struct StoreContents {
    pub(crate) fleet: Fleet,
    /// The largest sequence number that may have been used. New numbers must be larger.
    pub(crate) seq: u64,
    /// The states, recomputed from the log. `None` if the database is new.
    pub(crate) states: Option<StateResolver>,
    /// The number of the last input in the log.
    pub(crate) last_input_seq: u64,
    /// When the last input was applied, according to the daemon that applied it.
    pub(crate) newest_input_at: Option<Timestamp>,
    /// How the clock of that daemon was set.
    pub(crate) clock_anchor: Option<ClockAnchor>,
    /// Events that wait for their runtime.
    pub(crate) unbound_events: Vec<EventRow>,
    /// For each current runtime and source, the position of the newest event.
    pub(crate) cursors: Vec<SourceCursor>,
    /// The adapter memory of each current runtime.
    pub(crate) memories: Vec<(RuntimeId, AdapterMemory)>,
    /// The adapters that are switched off.
    pub(crate) disabled_adapters: BTreeSet<String>,
    pub(crate) tasks: BTreeMap<TaskSessionKey, TaskSession>,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<(Self, StoreContents), StoreError> {
        let opened = open::open(path)?;
        let (writer, jobs) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("store".into())
            .spawn(move || write_all(opened.connection, &jobs))
            .map_err(|e| StoreError::Open { path: path.to_owned(), message: e.to_string() })?;
        let store = Self { path: path.to_owned(), quarantined: opened.quarantined, writer, thread: Some(thread) };
        Ok((store, opened.contents))
    }

    /// Writes the changes as one batch. Returns when all of them are committed, or an error if none is.
    pub(crate) async fn commit(&self, changes: Vec<StoreChange>) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let gone = || StoreError::Write("the writer thread has stopped".into());
        self.writer.send(WriteJob { changes, done }).map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// Runs a query on a read-only connection, on a thread that may block. The query sees only committed data.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let outcome = tokio::task::spawn_blocking(move || query(&open_reader(&path)?)).await;
        outcome.map_err(|error| StoreError::Read(error.to_string()))?.map_err(|e| StoreError::Read(e.to_string()))
    }

    /// Opens a read-only connection. The connection sees only committed data.
    pub(crate) fn reader(&self) -> Result<Connection, StoreError> {
        open_reader(&self.path)
            .map_err(|error| StoreError::Open { path: self.path.clone(), message: error.to_string() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn quarantined(&self) -> Option<&Path> {
        self.quarantined.as_deref()
    }
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
}

impl Drop for Store {
    fn drop(&mut self) {
        // Closing the channel ends the thread after it has written the queued jobs.
        self.writer = mpsc::channel().0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(mut connection: Connection, jobs: &mpsc::Receiver<WriteJob>) {
    while let Ok(WriteJob { changes, done }) = jobs.recv() {
        let outcome = write_batch(&mut connection, &changes).map_err(|e| StoreError::Write(e.to_string()));
        if changes.iter().any(|change| matches!(change, StoreChange::Purge { .. })) {
            // Purged data stays in the write-ahead log until that is truncated.
            let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
        }
        // The caller may be gone; the batch is written anyway.
        let _ = done.send(outcome);
    }
    if let Err(error) = connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);") {
        tracing::warn!(%error, "could not optimize the database on exit; the next start does it");
    }
}

fn write_batch(connection: &mut Connection, changes: &[StoreChange]) -> rusqlite::Result<()> {
    let now = Timestamp::now();
    let tx = connection.transaction()?;
    for change in changes {
        rows::write(&tx, change, now)?;
    }
    tx.commit()
}
