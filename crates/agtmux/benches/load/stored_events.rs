//! What is in the database.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The numbers of our events. One that is there twice would be counted as missing: the keys are unique.
pub(crate) fn keys(database: &Path) -> HashSet<usize> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let mut statement = connection.prepare("SELECT dedupe_key FROM events").expect("a statement");
    let keys = statement.query_map([], |row| row.get::<_, String>(0)).expect("a query");
    keys.filter_map(|key| key.ok()?.strip_prefix("load-")?.parse().ok()).collect()
}
