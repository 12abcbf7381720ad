//! The log of everything that decided states, from which every state can be made again.

use std::path::Path;

use agtmux_core::resolver::{ResolverInput, StateResolver, StateTransition};
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::rows::{parse_column, timestamp_column};

/// One input and what it brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedInput {
    pub(crate) n: u64,
    pub(crate) at: Timestamp,
    pub(crate) event_id: Option<String>,
    pub(crate) input: ResolverInput,
    /// Each with the number under which it is published.
    pub(crate) transitions: Vec<(u64, StateTransition)>,
}

/// A transition as it is stored: enough to see whether a replay gives the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredTransition {
    pub(crate) seq: u64,
    pub(crate) n: u64,
    pub(crate) at: Timestamp,
    pub(crate) runtime_id: String,
    pub(crate) from: Option<State>,
    pub(crate) state: State,
    pub(crate) reason: Option<ReasonCode>,
    pub(crate) confidence: Confidence,
    pub(crate) version: u64,
}

impl StoredTransition {
    pub(crate) fn of(seq: u64, n: u64, at: Timestamp, transition: &StateTransition) -> Self {
        Self {
            seq,
            n,
            at,
            runtime_id: transition.runtime.to_string(),
            from: transition.from.as_ref().map(|r| r.state),
            state: transition.to.state,
            reason: transition.to.reason,
            confidence: transition.to.confidence,
            version: transition.to.version,
        }
    }

    /// Whether it is the same change, whatever number it was published under.
    pub(crate) fn same_change(&self, other: &Self) -> bool {
        Self { seq: other.seq, ..self.clone() } == *other
    }
}

pub(super) fn write(tx: &Transaction<'_>, logged: &LoggedInput) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT INTO engine_inputs (input_seq, at, event_id, input) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![logged.n.cast_signed(), logged.at.as_microsecond(), logged.event_id, json(&logged.input)])?;
    for (seq, transition) in &logged.transitions {
        let row = StoredTransition::of(*seq, logged.n, logged.at, transition);
        tx.prepare_cached(
            "INSERT INTO transitions (seq, input_seq, at, runtime_id, from_state, state, reason_code, confidence,
                                      state_version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            row.seq.cast_signed(),
            row.n.cast_signed(),
            row.at.as_microsecond(),
            row.runtime_id,
            row.from.map(State::as_str),
            row.state.as_str(),
            row.reason.map(ReasonCode::as_str),
            row.confidence.as_str(),
            row.version.cast_signed()
        ])?;
    }
    Ok(())
}

/// Replays begin at the last one; the one before it is kept in case that one is damaged. Where inputs before it were
/// lost, none before it is of use.
pub(super) fn write_checkpoint(
    tx: &Transaction<'_>,
    n: u64,
    at: Timestamp,
    engine: &StateResolver,
    after_loss: bool,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT OR REPLACE INTO checkpoints (input_seq, at, resolver) VALUES (?1, ?2, ?3)",
        params![n.cast_signed(), at.as_microsecond(), json(engine)],
    )?;
    tx.execute(
        "DELETE FROM checkpoints
         WHERE input_seq NOT IN (SELECT input_seq FROM checkpoints ORDER BY input_seq DESC LIMIT ?1)",
        [if after_loss { 1 } else { 2 }],
    )?;
    Ok(())
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("our own types serialise: {error}"))
}

/// Where a replay begins: the last checkpoint, and the number of the last input that it contains.
pub(crate) fn last_checkpoint(connection: &Connection) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    checkpoint(connection, "SELECT input_seq, resolver FROM checkpoints ORDER BY input_seq DESC LIMIT 1")
}

fn checkpoint(connection: &Connection, sql: &str) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    let found =
        connection.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).optional()?;
    found.map(|(n, text)| Ok((n.cast_unsigned(), parse_json(1, &text)?))).transpose()
}

/// The oldest checkpoint that is kept: a replay from there goes over the most.
pub(crate) fn first_checkpoint(connection: &Connection) -> rusqlite::Result<Option<(u64, StateResolver)>> {
    checkpoint(connection, "SELECT input_seq, resolver FROM checkpoints ORDER BY input_seq LIMIT 1")
}

/// A runtime, its state, why, and the version.
type StoredState = (String, State, Option<ReasonCode>, u64);

/// The states as they are stored, by runtime.
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

/// The inputs after this one, in order.
pub(crate) fn inputs_after(connection: &Connection, n: u64) -> rusqlite::Result<Vec<(u64, Timestamp, ResolverInput)>> {
    let sql = "SELECT input_seq, at, input FROM engine_inputs WHERE input_seq > ?1 ORDER BY input_seq";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([n.cast_signed()], |row| {
        let text: String = row.get(2)?;
        Ok((row.get::<_, i64>(0)?.cast_unsigned(), timestamp_column(row, 1)?, parse_json(2, &text)?))
    })?;
    rows.collect()
}

/// The transitions that inputs after this one brought about, in order.
pub(crate) fn transitions_after(connection: &Connection, n: u64) -> rusqlite::Result<Vec<StoredTransition>> {
    let mut statement = connection.prepare(&format!("{TRANSITIONS} WHERE input_seq > ?1 ORDER BY seq"))?;
    statement.query_map([n.cast_signed()], transition)?.collect()
}

/// The changes of one runtime, in order.
pub(crate) fn history(path: &Path, runtime: &str) -> rusqlite::Result<Vec<StoredTransition>> {
    let connection = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = connection.prepare(&format!("{TRANSITIONS} WHERE runtime_id = ?1 ORDER BY seq"))?;
    statement.query_map([runtime], transition)?.collect()
}

const TRANSITIONS: &str =
    "SELECT seq, input_seq, at, runtime_id, from_state, state, reason_code, confidence, state_version FROM transitions";

fn transition(row: &Row<'_>) -> rusqlite::Result<StoredTransition> {
    let (from, reason): (Option<String>, Option<String>) = (row.get(4)?, row.get(6)?);
    Ok(StoredTransition {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        n: row.get::<_, i64>(1)?.cast_unsigned(),
        at: timestamp_column(row, 2)?,
        runtime_id: row.get(3)?,
        from: from.and_then(|word| word.parse().ok()),
        state: parse_column(row, 5)?,
        reason: reason.and_then(|word| word.parse().ok()),
        confidence: parse_column(row, 7)?,
        version: row.get::<_, i64>(8)?.cast_unsigned(),
    })
}

fn parse_json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}
