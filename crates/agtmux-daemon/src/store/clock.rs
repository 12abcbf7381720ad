//! Stores the clock setting under which times are recorded, and moves stored times after the clock was set.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::rows::to_json;
use crate::clock::ClockAnchor;

/// Statements that move the times which the next daemon compares with its clock. `?1` is the step of the clock. `?2` is
/// the current time, and no time is moved beyond it. The checkpoint and the log are not changed, because the log
/// contains the step. All other stored times are history and stay unchanged.
const MOVES: [&str; 5] = [
    "UPDATE runtimes SET started_at = min(started_at + ?1, ?2), ended_at = min(ended_at + ?1, ?2)",
    "UPDATE panes SET updated_at = min(updated_at + ?1, ?2)",
    "UPDATE events SET event_time = min(event_time + ?1, ?2), ingested_at = min(ingested_at + ?1, ?2)
     WHERE status = 'pending_bind'",
    "UPDATE runtime_source_cursors SET last_order_event_time = min(last_order_event_time + ?1, ?2),
                                       last_order_ingested_at = min(last_order_ingested_at + ?1, ?2)",
    // A snapshot may expire in the future, so its expiry has no such limit.
    "UPDATE action_snapshots SET observed_at = min(observed_at + ?1, ?2), expires_at = expires_at + ?1",
];

pub(super) fn set(
    tx: &Transaction<'_>,
    by: SignedDuration,
    now: Timestamp,
    anchor: &ClockAnchor,
) -> rusqlite::Result<()> {
    let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    for sql in MOVES.iter().filter(|_| micros != 0) {
        tx.execute(sql, [micros, now.as_microsecond()])?;
    }
    tx.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('clock_anchor', ?1)", [to_json(anchor)]).map(drop)
}

/// The clock anchor of the daemon that ran last. `None` if an older version wrote the database.
pub(super) fn anchor(connection: &Connection) -> rusqlite::Result<Option<ClockAnchor>> {
    let sql = "SELECT value FROM meta WHERE key = 'clock_anchor'";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
