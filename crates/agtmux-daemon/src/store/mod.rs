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
mod restore;
mod rows;
pub(crate) mod schema;
pub(crate) mod targets;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use agtmux_agents::native::AdapterMemory;
use agtmux_core::fleet::Fleet;
use agtmux_core::resolver::StateResolver;
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::background::panic_message;
use crate::clock::ClockAnchor;
use restore::DatabaseFile;

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
    /// How often the database was restored. Connections from before do not see later changes.
    restores: Arc<AtomicU64>,
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
        let restores = Arc::default();
        let file = DatabaseFile::new(path, Arc::clone(&restores));
        let thread = thread::Builder::new()
            .name("store".into())
            .spawn(move || write_all(opened.connection, file, &jobs))
            .map_err(|e| StoreError::Open { path: path.to_owned(), message: e.to_string() })?;
        let (path, quarantined, thread) = (path.to_owned(), opened.quarantined, Some(thread));
        let store = Self { path, quarantined, writer, thread, restores };
        Ok((store, opened.contents))
    }

    /// Writes the changes as one batch. Returns when all of them are committed, or an error if none is.
    pub(crate) async fn commit(&self, changes: Vec<StoreChange>) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let gone = || StoreError::Write("the writer thread has stopped".into());
        self.writer.send(WriteJob { changes, done }).map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// Puts the database back if another program removed its file. Every commit does the same.
    pub(crate) async fn restore_if_removed(&self) -> Result<(), StoreError> {
        self.commit(Vec::new()).await
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
        let opened = open_reader(&self.path).and_then(|reader| open::open_wal(&reader).map(|()| reader));
        opened.map_err(|error| StoreError::Open { path: self.path.clone(), message: error.to_string() })
    }

    /// How often the database was restored. A connection that is older than the last time must be opened again.
    pub(crate) fn restores(&self) -> u64 {
        self.restores.load(Ordering::Acquire)
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

fn write_all(mut connection: Connection, mut file: DatabaseFile, jobs: &mpsc::Receiver<WriteJob>) {
    while let Ok(WriteJob { changes, done }) = jobs.recv() {
        let outcome = write_or_catch(&mut connection, &changes);
        if changes.iter().any(|change| matches!(change, StoreChange::Purge { .. })) {
            // Purged data stays in the write-ahead log until that is truncated.
            let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
        }
        // The batch may be in a file that was removed, where no later daemon finds it.
        let outcome = outcome.and_then(|()| file.restore_if_removed(&mut connection));
        // The caller may be gone; the batch is written anyway.
        let _ = done.send(outcome.map_err(StoreError::Write));
    }
    if let Err(error) = file.restore_if_removed(&mut connection) {
        tracing::error!(error, "the database was removed and could not be restored");
        // Closing the connection would delete the write-ahead log of the database that is at the path now.
        std::mem::forget(connection);
        return;
    }
    if let Err(error) = connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);") {
        tracing::warn!(%error, "could not optimize the database on exit; the next start does it");
    }
}

/// Writes a batch. A panic rolls the batch back and fails it, and the thread continues.
fn write_or_catch(connection: &mut Connection, changes: &[StoreChange]) -> Result<(), String> {
    if changes.is_empty() {
        return Ok(());
    }
    let written = catch_unwind(AssertUnwindSafe(|| write_batch(connection, changes)));
    match written {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(panic) => {
            let message = format!("the store panicked: {}", panic_message(&*panic));
            tracing::error!(message);
            Err(message)
        }
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
