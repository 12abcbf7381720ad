//! Reads the stored events from the database.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The numbers of the stored events. Each event has its own key, so a duplicate cannot stand in for a missing event.
pub(crate) fn keys(database: &Path) -> HashSet<usize> {
    let connection =
        Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database opens");
    let mut statement = connection.prepare("SELECT dedupe_key FROM events").expect("the statement is valid");
    let keys = statement.query_map([], |row| row.get::<_, String>(0)).expect("the query runs");
    keys.filter_map(|key| key.ok()?.strip_prefix("load-")?.parse().ok()).collect()
}
