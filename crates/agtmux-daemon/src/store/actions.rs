//! The audit log, and the snapshots that guard actions.

use agtmux_api::wire::ActionRecord;
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::insert::insert;
use super::rows::{json_column, to_json};

/// One action. The whole record is stored as JSON. The fields that queries may search also have columns of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionRow {
    pub(crate) record: ActionRecord,
    /// The hash of the request. A later request with the same `request_ref` and a different hash is a conflict.
    pub(crate) content_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotRow {
    pub(crate) snapshot_id: String,
    pub(crate) server: ServerKey,
    pub(crate) generation: Generation,
    pub(crate) pane: PaneId,
    pub(crate) epoch: u32,
    pub(crate) pane_pid: u32,
    pub(crate) runtime_id: Option<String>,
    pub(crate) state_version: Option<u64>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) observed_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) nonce: String,
}

pub(super) fn put(tx: &Transaction<'_>, action: &ActionRow) -> rusqlite::Result<()> {
    let ActionRow { record, content_hash } = action;
    insert!(tx, "INSERT INTO actions", {
        action_id: record.action_id,
        kind: record.kind.as_str(),
        at: record.at.as_microsecond(),
        status: record.status.as_str(),
        request_ref: record.request_ref,
        content_hash: content_hash,
        runtime_id: record.runtime_id,
        snapshot_id: record.snapshot_id,
        record: to_json(record),
    } "ON CONFLICT (action_id) DO UPDATE SET status = excluded.status, request_ref = excluded.request_ref,
           runtime_id = excluded.runtime_id, snapshot_id = excluded.snapshot_id, record = excluded.record")
}

pub(super) fn put_snapshot(tx: &Transaction<'_>, row: &SnapshotRow) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO action_snapshots", {
        snapshot_id: row.snapshot_id,
        target_id: row.server.target.as_str(),
        server: row.server.server.as_str(),
        server_pid: row.generation.pid,
        server_start: row.generation.start_time,
        pane_id: row.pane.to_string(),
        pane_epoch: row.epoch,
        pane_pid: row.pane_pid,
        runtime_id: row.runtime_id,
        state_version: row.state_version.map(u64::cast_signed),
        fingerprint: row.fingerprint,
        observed_at: row.observed_at.as_microsecond(),
        expires_at: row.expires_at.as_microsecond(),
        nonce: row.nonce,
    })
}

pub(crate) fn by_id(connection: &Connection, id: &str) -> rusqlite::Result<Option<ActionRecord>> {
    let sql = "SELECT record FROM actions WHERE action_id = ?1";
    connection.query_row(sql, [id], |row| json_column(row, 0)).optional()
}

/// The action with this `request_ref`, and the hash of its request.
pub(crate) fn by_request(connection: &Connection, request_ref: &str) -> rusqlite::Result<Option<ActionRow>> {
    let sql = "SELECT record, content_hash FROM actions WHERE request_ref = ?1";
    let read = |row: &Row<'_>| Ok(ActionRow { record: json_column(row, 0)?, content_hash: row.get(1)? });
    connection.query_row(sql, [request_ref], read).optional()
}

/// The newest `limit` actions that began at or after `since`, of one runtime or of all runtimes, ordered from old to
/// new.
pub(crate) fn newest_since(
    connection: &Connection,
    since: Timestamp,
    runtime: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<ActionRecord>> {
    let sql = "SELECT record FROM actions WHERE at >= ?1 AND (?2 IS NULL OR runtime_id = ?2)
               ORDER BY at DESC, action_id DESC LIMIT ?3";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(params![since.as_microsecond(), runtime, limit], |row| json_column(row, 0))?;
    let mut records = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    records.reverse();
    Ok(records)
}
