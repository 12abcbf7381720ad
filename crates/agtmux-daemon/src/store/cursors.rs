//! The cursors: for each runtime and source, the position of the newest event.

use agtmux_core::evidence::Source;
use agtmux_core::ordering::OrderKey;
use agtmux_core::runtime::RuntimeId;
use rusqlite::{Connection, Row, Transaction, params};

use super::events::EventRow;
use super::rows::{parse_column, timestamp_column};

/// One stored cursor.
pub(crate) type SourceCursor = ((RuntimeId, Source), OrderKey);

/// Moves the cursor of this runtime and the event's source forward to the event. If the event is older than the cursor,
/// the cursor does not change.
pub(super) fn put(tx: &Transaction<'_>, runtime: &RuntimeId, event: &EventRow) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO runtime_source_cursors VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (runtime_id, source) DO UPDATE SET last_source_seq = coalesce(?3, last_source_seq),
                                                       last_order_event_time = ?4,
                                                       last_order_ingested_at = ?5, last_order_event_id = ?6
         WHERE coalesce(nullif(?3, last_source_seq) > last_source_seq, (?4, ?5, ?6)
                        > (last_order_event_time, last_order_ingested_at, last_order_event_id))",
    )?
    .execute(params![
        runtime.as_str(),
        event.source.as_str(),
        event.order.source_seq.map(u64::cast_signed),
        event.order.event_time.as_microsecond(),
        event.order.ingested_at.as_microsecond(),
        event.order.event_id
    ])?;
    Ok(())
}

/// The cursors of the runtimes that had not ended when the daemon stopped. A cursor that cannot be read is skipped,
/// because the next event sets it again.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<SourceCursor>> {
    let mut statement = connection.prepare(
        "SELECT c.runtime_id, c.source, c.last_source_seq, c.last_order_event_time, c.last_order_ingested_at,
                c.last_order_event_id
         FROM runtime_source_cursors c JOIN runtimes r ON r.runtime_id = c.runtime_id
         WHERE r.ended_at IS NULL",
    )?;
    Ok(statement.query_map([], cursor)?.filter_map(Result::ok).collect())
}

fn cursor(row: &Row<'_>) -> rusqlite::Result<SourceCursor> {
    let order = OrderKey {
        source_seq: row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
        event_time: timestamp_column(row, 3)?,
        ingested_at: timestamp_column(row, 4)?,
        event_id: row.get(5)?,
    };
    Ok(((RuntimeId::from_stored(row.get::<_, String>(0)?), parse_column(row, 1)?), order))
}
