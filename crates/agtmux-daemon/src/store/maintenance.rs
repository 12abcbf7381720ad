//! Keeps the database small: deletes what is old, deletes the oldest data if the database is too large, and returns
//! free pages to the file system. The writer thread does this in short steps between commits.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};

use super::purge;

/// The longest duration of a step. `URGENT_STEP` is the same limit while the database is far above its maximum size. A
/// commit waits for one step at most.
const STEP: Duration = Duration::from_millis(5);
const URGENT_STEP: Duration = Duration::from_millis(50);

/// A database above its limit shrinks to this part of the limit, so that it does not reach the limit again at once.
const SHRINK_TO_PERCENT: u64 = 90;
/// While the database is larger than this part of its limit, steps may take longer.
const URGENT_PERCENT: u64 = 105;

/// This many free pages are kept for new rows. All other free pages are returned to the file system.
const FREE_PAGES: u64 = 64;
const PAGES_PER_CHUNK: u32 = 64;

/// How many times agtmux tries to truncate the write-ahead log while a reader prevents it.
const MAX_TRUNCATIONS: u32 = 500;

/// The limits of the database. Data from before these times is deleted. If the database is larger than `max_bytes`, its
/// oldest data is also deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    pub(super) payloads_before: Timestamp,
    pub(super) all_before: Timestamp,
    pub(super) max_bytes: u64,
}

/// The size of the database, without the write-ahead log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StoreSize {
    pub(crate) file_bytes: u64,
    /// The size without free pages.
    pub(crate) used_bytes: u64,
}

impl StoreSize {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let read = |sql: &str| -> rusqlite::Result<u64> {
            let value: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(value.cast_unsigned())
        };
        let (pages, free) = (read("PRAGMA page_count")?, read("PRAGMA freelist_count")?);
        let page = read("PRAGMA page_size")?;
        Ok(Self { file_bytes: pages * page, used_bytes: pages.saturating_sub(free) * page })
    }
}

/// The stages of the maintenance, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MaintenanceStage {
    /// Old checkpoints come first, because they decide which inputs and transitions are needed.
    OldCheckpoints,
    /// Inputs from before the oldest checkpoint, which no replay reads.
    Inputs,
    OldPayloads,
    OldEvents,
    OldTransitions,
    OldRows,
    /// The oldest data of a database above its limit.
    Excess,
    /// Rebuilds a database of an older version once, so that it can return free pages.
    Rebuild,
    Vacuum,
    /// Deleted data stays in the write-ahead log until the log is truncated.
    TruncateLog,
    Done,
}

impl MaintenanceStage {
    fn next(self) -> Self {
        match self {
            Self::OldCheckpoints => Self::Inputs,
            Self::Inputs => Self::OldPayloads,
            Self::OldPayloads => Self::OldEvents,
            Self::OldEvents => Self::OldTransitions,
            Self::OldTransitions => Self::OldRows,
            Self::OldRows => Self::Excess,
            Self::Excess => Self::Rebuild,
            Self::Rebuild => Self::Vacuum,
            Self::Vacuum => Self::TruncateLog,
            Self::TruncateLog | Self::Done => Self::Done,
        }
    }
}

#[derive(Debug)]
pub(super) struct Maintenance {
    stage: MaintenanceStage,
    /// `None` until the engine has sent the limits.
    retention: Option<Retention>,
    cursors: purge::PurgeCursors,
    /// The database is above its limit, and nothing more can be deleted. The next purge tries again.
    is_stuck: bool,
    truncations: u32,
}

impl Default for Maintenance {
    fn default() -> Self {
        let cursors = purge::PurgeCursors::default();
        Self { stage: MaintenanceStage::Done, retention: None, cursors, is_stuck: false, truncations: 0 }
    }
}

impl Maintenance {
    pub(super) fn is_pending(&self) -> bool {
        self.stage != MaintenanceStage::Done
    }

    pub(super) fn max_bytes(&self) -> Option<u64> {
        self.retention.map(|retention| retention.max_bytes)
    }

    /// Starts the maintenance again from its first stage, with these limits.
    pub(super) fn begin(&mut self, retention: Retention) {
        *self = Self { stage: MaintenanceStage::OldCheckpoints, retention: Some(retention), ..Self::default() };
    }

    /// Notes that a checkpoint was written, and that older checkpoints were therefore deleted. The inputs before the
    /// oldest remaining checkpoint can now be deleted.
    pub(super) fn checkpoint_written(&mut self) {
        if self.stage > MaintenanceStage::Inputs {
            self.stage = MaintenanceStage::Inputs;
        }
    }

    /// Whether the database is above its limit and can shrink. If so, maintenance also runs while commits wait.
    pub(super) fn is_too_large(&self, size: StoreSize) -> bool {
        !self.is_stuck && self.max_bytes().is_some_and(|max| size.used_bytes > max)
    }

    /// Starts to shrink the database.
    pub(super) fn shrink(&mut self) {
        if matches!(
            self.stage,
            MaintenanceStage::Done
                | MaintenanceStage::Rebuild
                | MaintenanceStage::Vacuum
                | MaintenanceStage::TruncateLog
        ) {
            self.stage = MaintenanceStage::Inputs;
        }
    }

    /// Stops until the next purge, because a step failed.
    pub(super) fn give_up(&mut self) {
        (self.stage, self.is_stuck) = (MaintenanceStage::Done, true);
    }

    /// Does one step of the work. Does nothing while `waits_for_rebuild` is true, because the caller must then call
    /// `rebuild`.
    pub(super) fn step(&mut self, connection: &mut Connection, size: StoreSize) -> rusqlite::Result<()> {
        let is_urgent = self.max_bytes().is_some_and(|max| size.used_bytes > max / 100 * URGENT_PERCENT);
        let until = Instant::now() + if is_urgent { URGENT_STEP } else { STEP };
        match self.stage {
            MaintenanceStage::Vacuum => self.vacuum(connection, until),
            MaintenanceStage::TruncateLog => self.truncate_log(connection),
            MaintenanceStage::Rebuild | MaintenanceStage::Done => Ok(()),
            _ => {
                let tx = connection.transaction()?;
                while self.is_deleting() && Instant::now() < until {
                    self.delete_chunk(&tx)?;
                }
                tx.commit()?;
                if self.waits_for_rebuild() && returns_free_pages(connection)? {
                    self.stage = self.stage.next();
                }
                Ok(())
            }
        }
    }

    fn is_deleting(&self) -> bool {
        self.stage < MaintenanceStage::Rebuild
    }

    fn delete_chunk(&mut self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        let Some(retention) = self.retention else {
            // Until the engine has sent the limits, only inputs are deleted.
            if !purge::inputs(tx)? {
                self.stage = MaintenanceStage::Vacuum;
            }
            return Ok(());
        };
        let has_more = match self.stage {
            MaintenanceStage::OldCheckpoints => purge::old_checkpoints(tx, retention.all_before)?,
            MaintenanceStage::Inputs => purge::inputs(tx)?,
            MaintenanceStage::OldPayloads => purge::old_payloads(tx, &mut self.cursors, retention.payloads_before)?,
            MaintenanceStage::OldEvents => purge::old_events(tx, retention.all_before)?,
            MaintenanceStage::OldTransitions => purge::old_transitions(tx, &mut self.cursors, retention.all_before)?,
            MaintenanceStage::OldRows => purge::old_rows(tx, retention.payloads_before, retention.all_before)?,
            _ => self.delete_excess(tx, retention.max_bytes)?,
        };
        if !has_more {
            self.stage = self.stage.next();
        }
        Ok(())
    }

    /// Deletes a chunk of the oldest data if the database is too large. Returns whether more must be deleted.
    fn delete_excess(&mut self, tx: &Transaction<'_>, max_bytes: u64) -> rusqlite::Result<bool> {
        let used = StoreSize::read(tx)?.used_bytes;
        let goal = if self.cursors.is_shrinking { max_bytes / 100 * SHRINK_TO_PERCENT } else { max_bytes };
        self.cursors.is_shrinking = used > goal;
        if used <= goal {
            return Ok(false);
        }
        if purge::oldest(tx, &mut self.cursors)? {
            return Ok(true);
        }
        tracing::warn!(used, max_bytes, "the database is above its limit, and no old data is left to delete");
        self.is_stuck = true;
        Ok(false)
    }

    pub(super) fn waits_for_rebuild(&self) -> bool {
        self.stage == MaintenanceStage::Rebuild
    }

    /// Rebuilds a database of an older version, so that it can return free pages from now on. Commits wait meanwhile.
    pub(super) fn rebuild(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.stage = self.stage.next();
        let began = Instant::now();
        rebuild(connection)?;
        tracing::info!(after = ?began.elapsed(), "rebuilt the database; from now on its file shrinks when rows are deleted");
        Ok(())
    }

    fn vacuum(&mut self, connection: &Connection, until: Instant) -> rusqlite::Result<()> {
        if !returns_free_pages(connection)? {
            self.stage = self.stage.next();
            return Ok(());
        }
        while Instant::now() < until {
            let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
            if free.cast_unsigned() <= FREE_PAGES {
                self.stage = self.stage.next();
                break;
            }
            // Each row of the result stands for a page that was returned to the file system.
            let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES_PER_CHUNK})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
        }
        Ok(())
    }

    fn truncate_log(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        // Do not wait for a reader: try again in the next step.
        connection.busy_timeout(Duration::ZERO)?;
        let busy: rusqlite::Result<i64> =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", params![], |row| row.get(0));
        connection.busy_timeout(super::open::BUSY_TIMEOUT)?;
        self.truncations += 1;
        if busy? == 0 || self.truncations > MAX_TRUNCATIONS {
            self.truncations = 0;
            self.stage = MaintenanceStage::Done;
        }
        Ok(())
    }
}

/// Whether the database can return free pages one by one.
pub(super) fn returns_free_pages(connection: &Connection) -> rusqlite::Result<bool> {
    let mode: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    Ok(mode == 2)
}

pub(super) fn rebuild(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")
}
