//! Deletes rows in chunks. `secure_delete` overwrites deleted content in the database. The write-ahead log may contain
//! the content until the log is truncated afterwards.

use agtmux_core::ids::TargetName;
use jiff::Timestamp;
use rusqlite::{Transaction, params};

/// How many rows one chunk reads or deletes.
const CHUNK: i64 = 64;
/// Like `CHUNK`, but for rows that are read and mostly kept.
const LONG_CHUNK: i64 = 512;

/// How far the current purge has come in the tables of which it keeps some old rows.
#[derive(Debug, Default)]
pub(super) struct PurgeCursors {
    /// The arrival time and the row id of the last event whose payload was checked.
    payload: (i64, i64),
    transition: i64,
    remote_transition: i64,
    /// Whether the database was above its limit and is not yet small enough.
    pub(super) is_shrinking: bool,
}

/// The conditions for deleting a transition: a replay from the oldest checkpoint does not read it, and it is not the
/// last transition of a current runtime.
const UNUSED_TRANSITION: &str = "input_seq <= (SELECT min(input_seq) FROM checkpoints)
    AND (EXISTS (SELECT 1 FROM transitions n WHERE n.runtime_id = transitions.runtime_id AND n.seq > transitions.seq)
         OR NOT EXISTS (SELECT 1 FROM states s WHERE s.runtime_id = transitions.runtime_id))";

/// Deletes inputs that are not newer than the oldest checkpoint. A replay starts at that checkpoint. Like all functions
/// of this module, returns whether more rows may have to be deleted.
pub(super) fn inputs(tx: &Transaction<'_>) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM engine_inputs WHERE input_seq IN (
                   SELECT input_seq FROM engine_inputs
                   WHERE input_seq <= (SELECT min(input_seq) FROM checkpoints) ORDER BY input_seq LIMIT ?1)";
    Ok(tx.prepare_cached(sql)?.execute([CHUNK])? > 0)
}

pub(super) fn old_checkpoints(tx: &Transaction<'_>, before: Timestamp) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM checkpoints WHERE at < ?1 AND input_seq < (SELECT max(input_seq) FROM checkpoints)";
    tx.execute(sql, [before.as_microsecond()])?;
    Ok(false)
}

/// Deletes the payloads of the next chunk of old events. A pending event keeps its payload, because the payload is read
/// when the event is bound.
pub(super) fn old_payloads(
    tx: &Transaction<'_>,
    cursors: &mut PurgeCursors,
    before: Timestamp,
) -> rusqlite::Result<bool> {
    let sql = "SELECT ingested_at, rowid, (payload IS NOT NULL OR raw_payload IS NOT NULL) AND status <> 'pending_bind'
               FROM events WHERE (ingested_at, rowid) > (?1, ?2) AND ingested_at < ?3
               ORDER BY ingested_at, rowid LIMIT ?4";
    let (at, row) = cursors.payload;
    let mut select = tx.prepare_cached(sql)?;
    let before = before.as_microsecond();
    let rows = select.query_map(params![at, row, before, CHUNK], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let rows: Vec<(i64, i64, bool)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut clear = tx.prepare_cached("UPDATE events SET payload = NULL, raw_payload = NULL WHERE rowid = ?1")?;
    for (_, row, _) in rows.iter().filter(|(.., has_payload)| *has_payload) {
        clear.execute([row])?;
    }
    if let Some((at, row, _)) = rows.last() {
        cursors.payload = (*at, *row);
    }
    Ok(!rows.is_empty())
}

pub(super) fn old_events(tx: &Transaction<'_>, before: Timestamp) -> rusqlite::Result<bool> {
    delete_events(tx, before.as_microsecond())
}

fn delete_events(tx: &Transaction<'_>, before: i64) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM events WHERE rowid IN (
                   SELECT rowid FROM events WHERE ingested_at < ?1 AND status <> 'pending_bind'
                   ORDER BY ingested_at LIMIT ?2)";
    Ok(tx.prepare_cached(sql)?.execute([before, CHUNK])? > 0)
}

/// Deletes old transitions, in the order of their numbers. The pass ends at the first recent transition. A transition
/// with a time in the future does not end the pass: the clock was wrong when the transition was stored.
pub(super) fn old_transitions(
    tx: &Transaction<'_>,
    cursors: &mut PurgeCursors,
    before: Timestamp,
) -> rusqlite::Result<bool> {
    let (before, now) = (before.as_microsecond(), Timestamp::now().as_microsecond());
    let sql = "SELECT max(seq), sum(at >= ?2 AND at <= ?3) FROM
                   (SELECT seq, at FROM transitions WHERE seq > ?1 ORDER BY seq LIMIT ?4)";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
    let chunk = tx.prepare_cached(sql)?.query_row(params![cursors.transition, before, now, LONG_CHUNK], read)?;
    let (Some(last), recent) = chunk else { return Ok(false) };
    let sql = format!("DELETE FROM transitions WHERE seq > ?1 AND seq <= ?2 AND at < ?3 AND {UNUSED_TRANSITION}");
    tx.prepare_cached(&sql)?.execute([cursors.transition, last, before])?;
    cursors.transition = last;
    Ok(recent.unwrap_or(0) == 0)
}

/// Deletes the old rows of all other tables. Deletes them in chunks from the tables that can be large, and then all at
/// once from the small tables.
pub(super) fn old_rows(tx: &Transaction<'_>, payloads_before: Timestamp, before: Timestamp) -> rusqlite::Result<bool> {
    const SMALL: [&str; 4] = [
        "DELETE FROM action_snapshots WHERE expires_at < ?1",
        "DELETE FROM runtimes WHERE ended_at < ?1",
        "DELETE FROM agents WHERE updated_at < ?1
         AND agent_id NOT IN (SELECT agent_id FROM runtimes WHERE agent_id IS NOT NULL)",
        "DELETE FROM runtime_source_cursors WHERE last_order_ingested_at < ?1
         AND runtime_id NOT IN (SELECT runtime_id FROM runtimes)",
    ];
    for (table, before) in [("actions", before), ("turns", before), ("task_events", payloads_before)] {
        if delete_chunk_of(tx, table, "at", before.as_microsecond())? {
            return Ok(true);
        }
    }
    for sql in SMALL {
        tx.execute(sql, [before.as_microsecond()])?;
    }
    Ok(false)
}

/// Deletes a chunk of the oldest data, whatever its age: events first, then the history of other hosts, then the
/// history of this host, and the audit log only if nothing else is left. Another host that sends a large history
/// therefore cannot displace the history of this host, and events cannot displace the audit log.
///
/// Events are deleted as a whole: SQLite frees no page if only the payloads of small events are removed.
pub(super) fn oldest(tx: &Transaction<'_>, cursors: &mut PurgeCursors) -> rusqlite::Result<bool> {
    Ok(delete_events(tx, i64::MAX)?
        || delete_remote_history(tx, cursors)?
        || delete_history(tx, cursors)?
        || delete_chunk_of(tx, "actions", "at", i64::MAX)?)
}

fn delete_remote_history(tx: &Transaction<'_>, cursors: &mut PurgeCursors) -> rusqlite::Result<bool> {
    let condition = format!(
        "EXISTS (SELECT 1 FROM runtimes r WHERE r.runtime_id = transitions.runtime_id AND r.target_id <> '{}')",
        TargetName::LOCAL
    );
    if delete_next_transitions(tx, &mut cursors.remote_transition, LONG_CHUNK, &condition)? {
        return Ok(true);
    }
    let sql = "DELETE FROM runtimes WHERE rowid IN (
                   SELECT rowid FROM runtimes WHERE target_id <> ?1 AND ended_at IS NOT NULL LIMIT ?2)";
    Ok(tx.prepare_cached(sql)?.execute(params![TargetName::LOCAL, CHUNK])? > 0)
}

fn delete_history(tx: &Transaction<'_>, cursors: &mut PurgeCursors) -> rusqlite::Result<bool> {
    let mut has_deleted = delete_next_transitions(tx, &mut cursors.transition, CHUNK, "TRUE")?;
    for (table, time) in [("turns", "at"), ("task_events", "at")] {
        has_deleted |= delete_chunk_of(tx, table, time, i64::MAX)?;
    }
    let sql = "DELETE FROM runtimes WHERE rowid IN (
                   SELECT rowid FROM runtimes WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT ?1)";
    // Runtimes are small, and `resume` needs them, so they are deleted after the rest of the history.
    Ok(has_deleted || tx.prepare_cached(sql)?.execute([CHUNK])? > 0)
}

fn delete_next_transitions(
    tx: &Transaction<'_>,
    cursor: &mut i64,
    chunk: i64,
    condition: &str,
) -> rusqlite::Result<bool> {
    let sql = "SELECT max(seq) FROM (SELECT seq FROM transitions WHERE seq > ?1 ORDER BY seq LIMIT ?2)";
    let last: Option<i64> = tx.prepare_cached(sql)?.query_row([*cursor, chunk], |row| row.get(0))?;
    let Some(last) = last else { return Ok(false) };
    let sql = format!("DELETE FROM transitions WHERE seq > ?1 AND seq <= ?2 AND {condition} AND {UNUSED_TRANSITION}");
    tx.prepare_cached(&sql)?.execute([*cursor, last])?;
    *cursor = last;
    Ok(true)
}

fn delete_chunk_of(tx: &Transaction<'_>, table: &str, time: &str, before: i64) -> rusqlite::Result<bool> {
    let sql = format!(
        "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {time} < ?1 ORDER BY {time} LIMIT ?2)"
    );
    Ok(tx.prepare_cached(&sql)?.execute([before, CHUNK])? > 0)
}
