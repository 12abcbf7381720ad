//! Reads the payloads of events from the database, which stores them compressed.

use agtmux_testkit::TestWorld;
use rusqlite::{Connection, OpenFlags, Row};

/// The payload in this column of a row of `events`.
pub(crate) fn payload(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let stored: Option<Vec<u8>> = row.get(column)?;
    Ok(stored.map(|stored| agtmux_daemon::read_payload(&stored).expect("the daemon wrote it")))
}

/// The payloads of all stored events, in the order of their arrival.
#[track_caller]
pub(crate) fn stored_payloads(world: &TestWorld) -> Vec<String> {
    let file = world.state_dir().join("state.db");
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let mut query = database.prepare("SELECT payload FROM events ORDER BY ingested_at, rowid").expect("valid");
    let payloads = query.query_map([], |row| payload(row, 0)).expect("readable");
    payloads.filter_map(|payload| payload.expect("readable")).collect()
}
