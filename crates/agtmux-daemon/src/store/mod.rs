//! The SQLite database. Only one thread writes. It commits each batch completely or not at all.

pub(crate) mod actions;
pub(crate) mod agents;
mod clock;
mod cursors;
pub(crate) mod ended_agents;
pub(crate) mod events;
mod insert;
mod integrity;
pub(crate) mod log;
mod maintenance;
mod memories;
#[cfg(test)]
mod migration_tests;
mod open;
pub(crate) mod past_runtimes;
mod payload;
mod purge;
mod restore;
mod rows;
pub(crate) mod schema;
#[cfg(test)]
mod size_tests;
pub(crate) mod targets;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use agtmux_agents::native::AdapterMemory;
use agtmux_core::fleet::Fleet;
use agtmux_core::resolver::StateResolver;
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::clock::ClockAnchor;
use restore::DatabaseFile;

pub(crate) use actions::{ActionRow, SnapshotRow};
pub(crate) use agents::{ReportedAgentRow, TurnRow};
pub(crate) use cursors::SourceCursor;
pub(crate) use events::{EventRow, StoredSender};
pub(crate) use log::LoggedInput;
use maintenance::Maintenance;
pub use open::StoreError;
pub use payload::decompress as read_payload;
pub(crate) use rows::{PaneRecord, StoreChange};
pub(crate) use tasks::{TaskArchive, TaskRunRow, TaskSession, TaskSessionKey};
pub(crate) use writer::StoreStats;
use writer::{RebuildInterrupt, StoreWriter, WriteJob};

/// The handle of the writer thread. Dropping the handle waits until all queued batches are written.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    quarantined: Option<PathBuf>,
    /// The damage that was found since the daemon started.
    damage: Mutex<Option<String>>,
    stats: Arc<StoreStats>,
    interrupt: Arc<RebuildInterrupt>,
    writer: mpsc::Sender<WriteJob>,
    thread: Option<thread::JoinHandle<()>>,
    /// How many times the database was restored. A connection that was opened before the last restore does not see
    /// later changes.
    restores: Arc<AtomicU64>,
}

/// The stored data that the daemon reads when it starts.
#[derive(Debug)]
pub(crate) struct StoreContents {
    pub(crate) fleet: Fleet,
    /// The largest sequence number that may have been used. New numbers must be larger.
    pub(crate) seq: u64,
    /// The states, recomputed from the logged inputs. `None` if the database is new.
    pub(crate) states: Option<StateResolver>,
    /// The number of the last logged input.
    pub(crate) last_input_seq: u64,
    /// When the last input was applied, according to the daemon that applied it.
    pub(crate) newest_input_at: Option<Timestamp>,
    /// The clock setting under which the stored times were recorded. The daemon compares it with the current setting to
    /// detect a clock change.
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
        let (stats, interrupt) = (Arc::<StoreStats>::default(), Arc::<RebuildInterrupt>::default());
        let (connection, maintenance) = (opened.connection, Maintenance::default());
        let (path, quarantined) = (path.to_owned(), opened.quarantined);
        let restores = Arc::default();
        let file = DatabaseFile::new(&path, Arc::clone(&restores));
        let store_writer = StoreWriter {
            path: path.clone(),
            connection,
            jobs,
            stats: stats.clone(),
            interrupt: interrupt.clone(),
            maintenance,
            file,
        };
        let thread = thread::Builder::new()
            .name("store".into())
            .spawn(move || store_writer.run())
            .map_err(|e| StoreError::Open { path: path.clone(), message: e.to_string() })?;
        let (damage, thread) = (Mutex::default(), Some(thread));
        let store = Self { path, quarantined, damage, stats, interrupt, writer, thread, restores };
        Ok((store, opened.contents))
    }

    /// Writes the changes as one batch. Returns when all changes are committed, or returns an error if no change is
    /// committed.
    pub(crate) async fn commit(&self, changes: Vec<StoreChange>) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let gone = || StoreError::Write("the writer thread has stopped".into());
        self.stats.queued.fetch_add(1, Ordering::Relaxed);
        self.writer.send(WriteJob { changes, done }).map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    /// Puts the database back if another program removed its file. Every commit also does this.
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

    /// How many times the database was restored. A connection that was opened before the last restore must be opened
    /// again.
    pub(crate) fn restores(&self) -> u64 {
        self.restores.load(Ordering::Acquire)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn quarantined(&self) -> Option<&Path> {
        self.quarantined.as_deref()
    }

    pub(crate) fn stats(&self) -> &StoreStats {
        &self.stats
    }

    /// Checks the tables that were not checked at the start, because they are large.
    pub(crate) async fn check_large_tables(&self) {
        let path = self.path.clone();
        match self.read(move |connection| integrity::check_large_tables(connection, &path)).await {
            Ok(None) => {}
            Ok(Some(damage)) => {
                tracing::error!(damage, "the database is damaged; the next start moves it aside");
                let note = format!("the database is damaged ({damage}); `agtmux daemon restart` creates a new one");
                *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(note);
            }
            Err(error) => tracing::warn!(%error, "could not check the database"),
        }
    }

    /// The damage that was found since the daemon started.
    pub(crate) fn damage(&self) -> Option<String> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
}

impl Drop for Store {
    fn drop(&mut self) {
        // Closing the channel ends the thread after it has written the queued jobs.
        self.writer = mpsc::channel().0;
        self.interrupt.interrupt();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
