//! Puts the database back if another program removes its file while the daemon runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agtmux_api::paths::private_dir;
use rusqlite::Connection;

use super::open;
use crate::file_identity::FileIdentity;

/// The file of the open database.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    identity: Option<FileIdentity>,
    restores: Arc<AtomicU64>,
}

impl DatabaseFile {
    /// The file that was just opened.
    pub(super) fn new(path: &Path, restores: Arc<AtomicU64>) -> Self {
        Self { path: path.to_owned(), identity: FileIdentity::at(path), restores }
    }

    /// Checks that the path names the open database. If there is no file, the connection still has the removed one, so
    /// a complete copy of it is put at the path.
    pub(super) fn restore_if_removed(&mut self, connection: &mut Connection) -> Result<(), String> {
        let path = self.path.display().to_string();
        match FileIdentity::at(&self.path) {
            found if found == self.identity => Ok(()),
            Some(_) => Err(format!("'{path}' was replaced by another file; run `agtmux daemon restart`")),
            None => {
                let error = |error: String| format!("'{path}' was removed and cannot be restored: {error}");
                self.copy(connection).map_err(error)?;
                tracing::warn!(path, "the database was removed; it is restored with all its data");
                Ok(())
            }
        }
    }

    fn copy(&mut self, connection: &mut Connection) -> Result<(), String> {
        if let Some(dir) = self.path.parent() {
            private_dir(dir, "AGTMUX_STATE_DIR").map_err(|error| error.to_string())?;
        }
        let draft = self.draft();
        let _ = fs::remove_file(&draft);
        // The copy is as private as the original: the daemon's umask allows no access by other users.
        connection.execute("VACUUM INTO ?1", [draft.to_string_lossy()]).map_err(|error| error.to_string())?;
        // A link, unlike a rename, never replaces the database of a daemon that has started meanwhile.
        let linked = fs::hard_link(&draft, &self.path);
        let _ = fs::remove_file(&draft);
        linked.map_err(|error| error.to_string())?;
        self.identity = FileIdentity::at(&self.path);
        // Close the removed database before the copy is opened, because closing deletes the write-ahead log by its name.
        let placeholder = Connection::open_in_memory().map_err(|error| error.to_string())?;
        drop(std::mem::replace(connection, placeholder));
        *connection = open::connect(&self.path).map_err(|error| error.to_string())?;
        open::open_wal(connection).map_err(|error| error.to_string())?;
        self.restores.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn draft(&self) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(".restored");
        name.into()
    }
}
