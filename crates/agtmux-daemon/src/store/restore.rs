//! Puts the database back if another program removes its files while the daemon runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agtmux_api::paths::private_dir;
use rusqlite::Connection;

use super::open;
use crate::file_identity::FileIdentity;

/// What SQLite appends to the name of a database for its write-ahead log and the index of that log.
const LOG: &str = "-wal";
const INDEX: &str = "-shm";

/// The open database.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    files: DatabaseFiles,
    /// A copy that the daemon put at the path, but could not open afterwards.
    unopened_copy: Option<FileIdentity>,
    restores: Arc<AtomicU64>,
}

impl DatabaseFile {
    /// Remembers the files of the database that was just opened.
    pub(super) fn new(path: &Path, restores: Arc<AtomicU64>) -> Self {
        Self { path: path.to_owned(), files: DatabaseFiles::at(path), unopened_copy: None, restores }
    }

    /// Checks that the path names the files of the open database. If one of these files was removed, the connection
    /// still has all of them open, so agtmux puts a complete copy at the path.
    pub(super) fn restore_if_removed(&mut self, connection: &mut Connection) -> Result<(), String> {
        let files = DatabaseFiles::at(&self.path);
        if files == self.files {
            return Ok(());
        }
        let found = files.database;
        let path = self.path.display().to_string();
        if found.is_some() && found != self.files.database && found != self.unopened_copy {
            return Err(format!("'{path}' was replaced by another file; run `agtmux daemon restart`"));
        }
        let error = |error: String| format!("'{path}' was removed and cannot be restored: {error}");
        self.copy(connection, found.is_some()).map_err(error)?;
        tracing::warn!(path, "the database was removed; it is restored with all its data");
        Ok(())
    }

    /// Copies the database to the path and opens the copy. If `is_ours` is true, the file at the path belongs to this
    /// daemon, and the copy may replace that file.
    fn copy(&mut self, connection: &mut Connection, is_ours: bool) -> Result<(), String> {
        if let Some(dir) = self.path.parent() {
            private_dir(dir, "AGTMUX_STATE_DIR").map_err(|error| error.to_string())?;
        }
        let draft = with_suffix(&self.path, ".restored");
        let _ = fs::remove_file(&draft);
        let placed = self.place_copy(connection, &draft, is_ours);
        let _ = fs::remove_file(&draft);
        placed?;
        self.unopened_copy = FileIdentity::at(&self.path);
        // The old connection stays in use until the copy is open. Closing the old connection does not touch the
        // write-ahead log of the copy, because SQLite sees that another file is at the path.
        let copy = open::connect_existing(&self.path).map_err(|error| error.to_string())?;
        open::open_wal(&copy).map_err(|error| error.to_string())?;
        *connection = copy;
        self.files = DatabaseFiles::at(&self.path);
        self.restores.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn place_copy(&self, connection: &Connection, draft: &Path, is_ours: bool) -> Result<(), String> {
        // The copy is as private as the original: the daemon's umask allows no access by other users.
        connection.execute("VACUUM INTO ?1", [draft.to_string_lossy()]).map_err(|error| error.to_string())?;
        // Remove the log and the index of the removed database, because SQLite would apply that log to the copy.
        for suffix in [LOG, INDEX] {
            let _ = fs::remove_file(with_suffix(&self.path, suffix));
        }
        // A link, unlike a rename, never replaces the database of a daemon that has started meanwhile.
        let placed = if is_ours { fs::rename(draft, &self.path) } else { fs::hard_link(draft, &self.path) };
        placed.map_err(|error| error.to_string())
    }
}

/// The files of a database. While a connection is open, all of them stay the same.
#[derive(Debug, PartialEq, Eq)]
struct DatabaseFiles {
    database: Option<FileIdentity>,
    log: Option<FileIdentity>,
    index: Option<FileIdentity>,
}

impl DatabaseFiles {
    fn at(path: &Path) -> Self {
        let sidecar = |suffix| FileIdentity::at(&with_suffix(path, suffix));
        Self { database: FileIdentity::at(path), log: sidecar(LOG), index: sidecar(INDEX) }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
