//! Stored events, redacted.

use agtmux_api::wire::{EventSender, ExplainEvent, RuntimeEvent};
use agtmux_core::binding::{BindFailure, EventOrigin};
use agtmux_core::evidence::Source;
use agtmux_core::ordering::OrderKey;
use agtmux_core::runtime::RuntimeId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::insert::insert;
use super::rows::{parse_column, timestamp_column};
use super::{cursors, payload};

/// One event. An event is either bound to a runtime or pending. The runtime of a pending event is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRow {
    pub(crate) order: OrderKey,
    pub(crate) runtime: Option<RuntimeId>,
    pub(crate) origin: Option<EventOrigin>,
    pub(crate) event_type: String,
    pub(crate) source: Source,
    pub(crate) source_event_id: Option<String>,
    pub(crate) dedupe_key: String,
    pub(crate) content_hash: String,
    /// Why a pending event can no longer be bound. For example, an event that matched several runtimes is not bound
    /// later, when only one of them is left.
    pub(crate) bind_failure: Option<BindFailure>,
    /// The sender. `None` if the event was saved while no daemon ran.
    pub(crate) sender: Option<StoredSender>,
}

/// The sender of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSender {
    #[serde(flatten)]
    pub(crate) shown: EventSender,
    /// The process ids of the sender and its ancestors, if the event must be about an agent among these processes.
    /// `None` if the sender may report about every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own_processes: Option<Vec<u32>>,
}

pub(super) fn put(tx: &Transaction<'_>, event: &EventRow, body: Option<&str>) -> rusqlite::Result<()> {
    // Only a pending event needs its origin.
    let origin = event.origin.as_ref().filter(|_| event.runtime.is_none());
    let origin = origin.and_then(|origin| serde_json::to_string(origin).ok());
    insert!(tx, "INSERT INTO events", {
        event_id: event.order.event_id,
        runtime_id: event.runtime.as_ref().map(RuntimeId::as_str),
        status: if event.runtime.is_some() { "bound" } else { "pending_bind" },
        event_type: event.event_type,
        source: event.source.as_str(),
        source_event_id: event.source_event_id,
        source_seq: event.order.source_seq.map(u64::cast_signed),
        event_time: event.order.event_time.as_microsecond(),
        ingested_at: event.order.ingested_at.as_microsecond(),
        dedupe_key: event.dedupe_key,
        content_hash: event.content_hash,
        origin: origin,
        payload: body.map(payload::compress).transpose()?,
        drop_reason: event.bind_failure.map(BindFailure::as_str),
        sender: event.sender.as_ref().and_then(|sender| serde_json::to_string(sender).ok()),
    })?;
    match &event.runtime {
        Some(runtime) => cursors::put(tx, runtime, event),
        None => Ok(()),
    }
}

pub(super) fn bind(tx: &Transaction<'_>, event: &EventRow, runtime: &RuntimeId) -> rusqlite::Result<()> {
    let sql = "UPDATE events SET status = 'bound', runtime_id = ?2, origin = NULL WHERE event_id = ?1";
    tx.prepare_cached(sql)?.execute(params![event.order.event_id, runtime.as_str()])?;
    cursors::put(tx, runtime, event)
}

pub(super) fn discard(tx: &Transaction<'_>, event_id: &str, why: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE events SET status = 'dropped_unbound', drop_reason = ?2 WHERE event_id = ?1";
    tx.prepare_cached(sql)?.execute(params![event_id, why]).map(drop)
}

/// The id and the content hash of the event with this deduplication key, from this source and for this runtime.
pub(crate) fn content_of(
    connection: &Connection,
    runtime: &RuntimeId,
    source: Source,
    key: &str,
) -> rusqlite::Result<Option<(String, String)>> {
    connection
        .prepare_cached(
            "SELECT event_id, content_hash FROM events WHERE runtime_id = ?1 AND source = ?2 AND dedupe_key = ?3",
        )?
        .query_row(params![runtime.as_str(), source.as_str(), key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The redacted body of an event. `None` if the event is unknown or its body was deleted.
pub(crate) fn body_of(connection: &Connection, event_id: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT payload, raw_payload FROM events WHERE event_id = ?1";
    connection.prepare_cached(sql)?.query_row([event_id], |row| payload::column(row, 0)).optional().map(Option::flatten)
}

/// The last events of a runtime, oldest first.
pub(crate) fn last_events(connection: &Connection, runtime: &str, limit: u32) -> rusqlite::Result<Vec<RuntimeEvent>> {
    let mut statement = connection.prepare(
        "SELECT event_id, source, event_type, event_time, ingested_at, payload, raw_payload, sender FROM events
         WHERE runtime_id = ?1 ORDER BY ingested_at DESC, event_id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![runtime, limit], |row| {
        let body = payload::column(row, 5)?;
        Ok(RuntimeEvent {
            event_id: row.get(0)?,
            source: parse_column(row, 1)?,
            event_type: row.get(2)?,
            event_time: timestamp_column(row, 3)?,
            ingested_at: timestamp_column(row, 4)?,
            sender: shown_sender(row, 7)?,
            body: body.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        })
    })?;
    let mut events = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    events.reverse();
    Ok(events)
}

/// The newest event of each source of a runtime.
pub(crate) fn newest_by_source(connection: &Connection, runtime: &str) -> rusqlite::Result<Vec<ExplainEvent>> {
    // SQLite takes the other columns from the row with the maximum.
    let mut statement = connection.prepare(
        "SELECT source, event_type, max(ingested_at), sender FROM events WHERE runtime_id = ?1
         GROUP BY source ORDER BY source",
    )?;
    let rows = statement.query_map([runtime], |row| {
        Ok(ExplainEvent {
            source: parse_column(row, 0)?,
            event_type: row.get(1)?,
            ingested_at: timestamp_column(row, 2)?,
            sender: shown_sender(row, 3)?,
        })
    })?;
    rows.collect()
}

fn stored_sender(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<StoredSender>> {
    let sender: Option<String> = row.get(column)?;
    Ok(sender.and_then(|text| serde_json::from_str(&text).ok()))
}

fn shown_sender(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<EventSender>> {
    Ok(stored_sender(row, column)?.map(|sender| sender.shown))
}

/// Events that were pending when the daemon stopped.
pub(super) fn unbound(connection: &Connection) -> rusqlite::Result<Vec<EventRow>> {
    let mut statement = connection.prepare(
        "SELECT event_id, origin, event_type, source, source_event_id, source_seq, event_time, ingested_at, dedupe_key,
                content_hash, drop_reason, sender FROM events WHERE status = 'pending_bind' ORDER BY ingested_at",
    )?;
    let rows = statement.query_map([], |row| {
        let (origin, bind_failure): (Option<String>, Option<String>) = (row.get(1)?, row.get(10)?);
        Ok(EventRow {
            order: OrderKey {
                source_seq: row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned),
                event_time: timestamp_column(row, 6)?,
                ingested_at: timestamp_column(row, 7)?,
                event_id: row.get(0)?,
            },
            runtime: None,
            origin: origin.and_then(|text| serde_json::from_str(&text).ok()),
            event_type: row.get(2)?,
            source: parse_column(row, 3)?,
            source_event_id: row.get(4)?,
            dedupe_key: row.get(8)?,
            content_hash: row.get(9)?,
            bind_failure: bind_failure.and_then(|text| text.parse().ok()),
            sender: stored_sender(row, 11)?,
        })
    })?;
    rows.collect()
}
