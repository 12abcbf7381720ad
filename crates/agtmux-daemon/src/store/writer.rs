//! The writer thread: commits batches, and maintains the database between them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, InterruptHandle};
use tokio::sync::oneshot;

use super::maintenance::{Maintenance, Retention, StoreSize};
use super::restore::DatabaseFile;
use super::rows::{self, StoreChange};
use super::{StoreError, integrity};
use crate::background::panic_message;

/// The pause between two steps of maintenance.
const MAINTENANCE_PAUSE: Duration = Duration::from_millis(20);

/// A database of an older version is rebuilt when no commit has arrived for this long, because commits must wait for
/// the rebuild.
const REBUILD_AFTER_IDLE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) changes: Vec<StoreChange>,
    pub(super) done: oneshot::Sender<Result<(), StoreError>>,
}

/// Figures about the store, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct StoreStats {
    /// Batches that are not committed yet.
    pub(super) queued: AtomicUsize,
    file_bytes: AtomicU64,
    used_bytes: AtomicU64,
    /// The size limit of the database. 0 until the engine has sent the limit.
    max_bytes: AtomicU64,
    write_errors: AtomicU64,
}

impl StoreStats {
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    pub(crate) fn size(&self) -> StoreSize {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        StoreSize { file_bytes: load(&self.file_bytes), used_bytes: load(&self.used_bytes) }
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn write_errors(&self) -> u64 {
        self.write_errors.load(Ordering::Relaxed)
    }
}

/// Interrupts a rebuild of the database when the daemon stops. Commits are never interrupted.
#[derive(Default)]
pub(super) struct RebuildInterrupt(Mutex<Option<InterruptHandle>>);

impl RebuildInterrupt {
    fn set(&self, handle: Option<InterruptHandle>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    pub(super) fn interrupt(&self) {
        if let Some(handle) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            handle.interrupt();
        }
    }
}

impl std::fmt::Debug for RebuildInterrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RebuildInterrupt").finish_non_exhaustive()
    }
}

pub(super) struct StoreWriter {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) jobs: mpsc::Receiver<WriteJob>,
    pub(super) stats: Arc<StoreStats>,
    pub(super) interrupt: Arc<RebuildInterrupt>,
    pub(super) maintenance: Maintenance,
    pub(super) file: DatabaseFile,
}

impl StoreWriter {
    /// Runs until the store is dropped and all queued batches are written.
    pub(super) fn run(mut self) {
        let mut last_job_at = Instant::now();
        let mut size = self.measure();
        loop {
            let job = if self.maintenance.is_pending() {
                match self.jobs.recv_timeout(MAINTENANCE_PAUSE) {
                    Ok(job) => Some(job),
                    Err(mpsc::RecvTimeoutError::Timeout) => None,
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            } else {
                match self.jobs.recv() {
                    Ok(job) => Some(job),
                    Err(_) => break,
                }
            };
            let is_idle = job.is_none();
            if let Some(job) = job {
                self.write(job);
                last_job_at = Instant::now();
                size = self.measure();
            }
            let is_too_large = self.maintenance.is_too_large(size);
            if is_too_large {
                self.maintenance.shrink();
            }
            if self.maintenance.is_pending() && (is_idle || is_too_large) {
                self.maintain(size, last_job_at.elapsed());
                size = self.measure();
            }
        }
        if let Err(error) = self.file.restore_if_removed(&mut self.connection) {
            tracing::error!(error, "the database was removed and could not be restored");
            // The files at the path do not belong to this daemon, so the connection must not be closed: SQLite cleans
            // up files when it closes a connection.
            std::mem::forget(self.connection);
            return;
        }
        if let Err(error) = self.connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);") {
            tracing::warn!(%error, "could not optimize the database on exit; the next start does it");
        }
    }

    fn write(&mut self, WriteJob { changes, done }: WriteJob) {
        let written = self.write_or_catch(&changes);
        if written.is_ok() {
            self.plan_maintenance(&changes);
        }
        // The batch may be in a file that was removed, where no later daemon finds it.
        let outcome = written.and_then(|()| self.file.restore_if_removed(&mut self.connection));
        if outcome.is_err() {
            self.stats.write_errors.fetch_add(1, Ordering::Relaxed);
        }
        self.stats.queued.fetch_sub(1, Ordering::Relaxed);
        // The caller may be gone; the batch is written anyway.
        let _ = done.send(outcome.map_err(StoreError::Write));
    }

    /// Writes a batch. If a panic occurs, the batch is rolled back, this function returns an error, and the thread
    /// continues.
    fn write_or_catch(&mut self, changes: &[StoreChange]) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let connection = &mut self.connection;
        match catch_unwind(AssertUnwindSafe(|| write_batch(connection, changes))) {
            Ok(outcome) => outcome.map_err(|error| {
                self.note_damage(&error);
                error.to_string()
            }),
            Err(panic) => {
                let message = format!("the store panicked: {}", panic_message(&*panic));
                tracing::error!(message);
                Err(message)
            }
        }
    }

    fn plan_maintenance(&mut self, changes: &[StoreChange]) {
        for change in changes {
            match change {
                StoreChange::Checkpoint { .. } => self.maintenance.checkpoint_written(),
                StoreChange::Purge { payloads_before, all_before, max_bytes } => {
                    let (payloads_before, all_before, max_bytes) = (*payloads_before, *all_before, *max_bytes);
                    self.stats.max_bytes.store(max_bytes, Ordering::Relaxed);
                    self.maintenance.begin(Retention { payloads_before, all_before, max_bytes });
                }
                _ => {}
            }
        }
    }

    fn maintain(&mut self, size: StoreSize, idle: Duration) {
        let outcome = match self.maintenance.waits_for_rebuild() {
            true if idle < REBUILD_AFTER_IDLE => Ok(()),
            true => {
                self.interrupt.set(Some(self.connection.get_interrupt_handle()));
                let outcome = self.maintenance.rebuild(&self.connection);
                self.interrupt.set(None);
                outcome
            }
            false => self.maintenance.step(&mut self.connection, size),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "could not clean up the database; the next purge tries again");
            self.note_damage(&error);
            self.maintenance.give_up();
        }
    }

    fn measure(&self) -> StoreSize {
        let size = StoreSize::read(&self.connection).unwrap_or_default();
        self.stats.file_bytes.store(size.file_bytes, Ordering::Relaxed);
        self.stats.used_bytes.store(size.used_bytes, Ordering::Relaxed);
        size
    }

    /// If the error means that the file is damaged, requests a check of the whole database at the next start.
    fn note_damage(&self, error: &rusqlite::Error) {
        if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
            integrity::request_full_check(&self.path);
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
