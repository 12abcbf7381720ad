//! The log of all inputs from which states were decided. Every state can be recomputed from this log.

use agtmux_core::resolver::{ResolverInput, StateResolver, StateTransition};
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::insert::insert;
use super::rows::{json_column, parse_column, timestamp_column, to_json};

/// One input and its transitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedInput {
    pub(crate) input_seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) event_id: Option<String>,
    pub(crate) input: ResolverInput,
    /// The transitions that the input caused. Each has the sequence number under which it is published.
    pub(crate) transitions: Vec<(u64, StateTransition)>,
}

/// A stored transition: its sequence number, and the fields that a replay must reproduce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredTransition {
    pub(crate) seq: u64,
    pub(crate) input_seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) runtime_id: String,
    pub(crate) from: Option<State>,
    pub(crate) state: State,
    pub(crate) reason: Option<ReasonCode>,
    pub(crate) confidence: Confidence,
    pub(crate) version: u64,
}

impl StoredTransition {
    pub(crate) fn of(seq: u64, input_seq: u64, at: Timestamp, transition: &StateTransition) -> Self {
        Self {
            seq,
            input_seq,
            at,
            runtime_id: transition.runtime.to_string(),
            from: transition.from.as_ref().map(|r| r.state),
            state: transition.to.state,
            reason: transition.to.reason,
            confidence: transition.to.confidence,
            version: transition.to.version,
        }
    }

    /// Whether two transitions are equal, apart from their sequence numbers.
    pub(crate) fn same_change(&self, other: &Self) -> bool {
        Self { seq: other.seq, ..self.clone() } == *other
    }
}

pub(super) fn write(tx: &Transaction<'_>, entry: &LoggedInput) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO engine_inputs", {
        input_seq: entry.input_seq.cast_signed(),
        at: entry.at.as_microsecond(),
        event_id: entry.event_id,
        input: to_json(&entry.input),
    })?;
    for (seq, transition) in &entry.transitions {
        let row = StoredTransition::of(*seq, entry.input_seq, entry.at, transition);
        insert!(tx, "INSERT INTO transitions", {
            seq: row.seq.cast_signed(),
            input_seq: row.input_seq.cast_signed(),
            at: row.at.as_microsecond(),
            runtime_id: row.runtime_id,
            from_state: row.from.map(State::as_str),
            state: row.state.as_str(),
            reason_code: row.reason.map(ReasonCode::as_str),
            confidence: row.confidence.as_str(),
            state_version: row.version.cast_signed(),
        })?;
    }
    Ok(())
}

/// Stores a checkpoint and deletes older ones. The daemon starts from the new checkpoint. The previous checkpoint is
/// kept, so that a replay covers more inputs. After a loss of inputs, only the new checkpoint is kept, because a replay
/// from an older one would miss the lost inputs.
pub(super) fn write_checkpoint(
    tx: &Transaction<'_>,
    input_seq: u64,
    at: Timestamp,
    resolver: &StateResolver,
    after_loss: bool,
) -> rusqlite::Result<()> {
    insert!(tx, "INSERT OR REPLACE INTO checkpoints", {
        input_seq: input_seq.cast_signed(),
        at: at.as_microsecond(),
        resolver: to_json(resolver),
    })?;
    tx.execute(
        "DELETE FROM checkpoints
         WHERE input_seq NOT IN (SELECT input_seq FROM checkpoints ORDER BY input_seq DESC LIMIT ?1)",
        [if after_loss { 1 } else { 2 }],
    )?;
    Ok(())
}

/// The last checkpoint, and the number of the last input that it contains.
pub(crate) fn last_checkpoint(connection: &Connection) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    checkpoint(connection, "SELECT input_seq, resolver FROM checkpoints ORDER BY input_seq DESC LIMIT 1")
}

fn checkpoint(connection: &Connection, sql: &str) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), json_column(row, 1)?));
    connection.query_row(sql, [], read).optional()
}

/// The oldest checkpoint: a replay from there covers the most inputs.
pub(crate) fn first_checkpoint(connection: &Connection) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    checkpoint(connection, "SELECT input_seq, resolver FROM checkpoints ORDER BY input_seq LIMIT 1")
}

/// Runtime id, state, reason and version.
type StoredState = (String, State, Option<ReasonCode>, u64);

/// The stored states, ordered by runtime.
pub(crate) fn states(connection: &Connection) -> rusqlite::Result<Vec<StoredState>> {
    let sql = "SELECT runtime_id, state, reason_code, state_version FROM states ORDER BY runtime_id";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let reason: Option<String> = row.get(2)?;
        Ok((
            row.get(0)?,
            parse_column(row, 1)?,
            reason.and_then(|r| r.parse().ok()),
            row.get::<_, i64>(3)?.cast_unsigned(),
        ))
    })?;
    rows.collect()
}

/// The inputs after `input_seq`, in order.
pub(crate) fn inputs_after(
    connection: &Connection,
    input_seq: u64,
) -> rusqlite::Result<Vec<(u64, Timestamp, ResolverInput)>> {
    let sql = "SELECT input_seq, at, input FROM engine_inputs WHERE input_seq > ?1 ORDER BY input_seq";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([input_seq.cast_signed()], |row| {
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), timestamp_column(row, 1)?, json_column(row, 2)?))
    })?;
    rows.collect()
}

/// When the last input was applied. If that input has been deleted from the log, this is the time of the newest
/// checkpoint.
pub(super) fn newest_input_at(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let newest = |table: &str| {
        let sql = format!("SELECT input_seq, at FROM {table} ORDER BY input_seq DESC LIMIT 1");
        connection.query_row(&sql, [], |row| Ok((row.get::<_, i64>(0)?, timestamp_column(row, 1)?))).optional()
    };
    Ok(newest("engine_inputs")?.max(newest("checkpoints")?).map(|(_, at)| at))
}

/// The transitions that were caused by the inputs after `input_seq`, in order.
pub(crate) fn transitions_after(connection: &Connection, input_seq: u64) -> rusqlite::Result<Vec<StoredTransition>> {
    let mut statement = connection.prepare(&format!("{TRANSITIONS} WHERE input_seq > ?1 ORDER BY seq"))?;
    statement.query_map([input_seq.cast_signed()], transition)?.collect()
}

/// The transitions of one runtime, in order.
pub(crate) fn history(connection: &Connection, runtime: &str) -> rusqlite::Result<Vec<StoredTransition>> {
    let mut statement = connection.prepare(&format!("{TRANSITIONS} WHERE runtime_id = ?1 ORDER BY seq"))?;
    statement.query_map([runtime], transition)?.collect()
}

const TRANSITIONS: &str =
    "SELECT seq, input_seq, at, runtime_id, from_state, state, reason_code, confidence, state_version FROM transitions";

fn transition(row: &Row<'_>) -> rusqlite::Result<StoredTransition> {
    let (from, reason): (Option<String>, Option<String>) = (row.get(4)?, row.get(6)?);
    Ok(StoredTransition {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        input_seq: row.get::<_, i64>(1)?.cast_unsigned(),
        at: timestamp_column(row, 2)?,
        runtime_id: row.get(3)?,
        from: from.and_then(|text| text.parse().ok()),
        state: parse_column(row, 5)?,
        reason: reason.and_then(|text| text.parse().ok()),
        confidence: parse_column(row, 7)?,
        version: row.get::<_, i64>(8)?.cast_unsigned(),
    })
}
