//! Checks whether the database file is damaged. The check of a large file takes seconds. In a large file, the tables
//! that grow with the history are therefore checked only after the start, while the daemon runs.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// A file up to this size is checked completely at each start.
const MAX_FULL_CHECK_BYTES: u64 = 8 << 20;

/// The tables that grow with the history. A start reads at most their newest rows.
const LARGE_TABLES: [&str; 6] = ["events", "engine_inputs", "transitions", "actions", "turns", "task_events"];

/// Checks the whole database if it is small or if a full check was requested. Otherwise checks all tables except the
/// large ones. Returns a description of the damage.
pub(super) fn check_at_start(connection: &Connection, path: &Path) -> rusqlite::Result<Option<String>> {
    let size = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if size <= MAX_FULL_CHECK_BYTES || marker(path).exists() {
        let damage = check(connection, None)?;
        if damage.is_none() {
            let _ = fs::remove_file(marker(path));
        }
        return Ok(damage);
    }
    for table in tables(connection)? {
        if !LARGE_TABLES.contains(&table.as_str())
            && let Some(damage) = check(connection, Some(&table))?
        {
            return Ok(Some(damage));
        }
    }
    Ok(None)
}

/// Checks the tables that `check_at_start` leaves out. If one is damaged, the next start moves the database aside.
pub(super) fn check_large_tables(connection: &Connection, path: &Path) -> rusqlite::Result<Option<String>> {
    if fs::metadata(path).map_or(0, |metadata| metadata.len()) <= MAX_FULL_CHECK_BYTES {
        return Ok(None);
    }
    for table in tables(connection)? {
        if LARGE_TABLES.contains(&table.as_str())
            && let Some(damage) = check(connection, Some(&table))?
        {
            request_full_check(path);
            return Ok(Some(damage));
        }
    }
    Ok(None)
}

fn check(connection: &Connection, table: Option<&str>) -> rusqlite::Result<Option<String>> {
    // Escape quotes: the migrations give the tables plain names, but a damaged file may contain other names.
    let argument = table.map_or("1".to_owned(), |table| format!("'{}'", table.replace('\'', "''")));
    let verdict: String = connection.query_row(&format!("PRAGMA quick_check({argument})"), [], |row| row.get(0))?;
    Ok((verdict != "ok").then_some(verdict))
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Makes the next start check the whole file, whatever its size.
pub(super) fn request_full_check(path: &Path) {
    let marker = marker(path);
    if let Err(error) = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&marker) {
        tracing::warn!(%error, path = %marker.display(), "could not request a check of the database");
    }
}

/// Withdraws the request for a check of the whole file, because the damaged file was moved aside.
pub(super) fn forget_request(path: &Path) {
    let _ = fs::remove_file(marker(path));
}

fn marker(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".check");
    PathBuf::from(name)
}
