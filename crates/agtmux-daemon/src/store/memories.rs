//! What adapters remember about runtimes, the sessions of agents, and which adapters are switched off.

use std::collections::BTreeSet;

use agtmux_agents::native::AdapterMemory;
use agtmux_core::ids::AgentType;
use agtmux_core::runtime::RuntimeId;
use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};

use super::insert::insert;
use super::rows::to_json;

pub(super) fn put_agent(
    tx: &Transaction<'_>,
    agent_id: &str,
    agent_type: &AgentType,
    session: &str,
    runtime: &RuntimeId,
    cwd: Option<&str>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO agents (agent_id, agent_type, native_session_id, tmux_pane_id, cwd, updated_at)
         VALUES (?1, ?2, ?3, (SELECT pane_id FROM runtimes WHERE runtime_id = ?4), ?5, ?6)
         ON CONFLICT (agent_id) DO UPDATE SET tmux_pane_id = excluded.tmux_pane_id, updated_at = excluded.updated_at,
                                              cwd = COALESCE(excluded.cwd, cwd)",
    )?
    .execute(params![agent_id, agent_type.as_str(), session, runtime.as_str(), cwd, at.as_microsecond()])?;
    tx.prepare_cached("UPDATE runtimes SET agent_id = ?2 WHERE runtime_id = ?1")?
        .execute(params![runtime.as_str(), agent_id])?;
    Ok(())
}

pub(super) fn put(tx: &Transaction<'_>, runtime: &RuntimeId, memory: &AdapterMemory) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE runtimes SET adapter_state = ?2 WHERE runtime_id = ?1")?
        .execute(params![runtime.as_str(), to_json(memory)])
        .map(drop)
}

/// What adapters remembered about the runtimes that had not ended when the daemon stopped. Unreadable memory is
/// skipped, because adapters also work without it.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<(RuntimeId, AdapterMemory)>> {
    let sql = "SELECT runtime_id, adapter_state FROM runtimes WHERE ended_at IS NULL AND adapter_state IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let read = |(id, text): (String, String)| Some((RuntimeId::from_stored(id), serde_json::from_str(&text).ok()?));
    Ok(rows.into_iter().filter_map(read).collect())
}

/// Stores whether an adapter is enabled. Everything else about the adapter comes from its manifest.
pub(super) fn put_adapter(tx: &Transaction<'_>, name: &str, enabled: bool, at: Timestamp) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO adapters", {
        adapter_name: name,
        agent_type: name,
        version: "",
        capabilities: "",
        enabled: enabled,
        updated_at: at.as_microsecond(),
    } "ON CONFLICT (adapter_name) DO UPDATE SET enabled = excluded.enabled, updated_at = excluded.updated_at")
}

pub(super) fn disabled(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("SELECT adapter_name FROM adapters WHERE enabled = 0")?;
    statement.query_map([], |row| row.get(0))?.collect()
}
