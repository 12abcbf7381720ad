//! Agents by their native session, and the turns of their conversations.

use agtmux_core::ids::AgentType;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::insert::insert;

/// What a hook reported about an agent. If a field is `None`, its stored value does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportedAgentRow {
    pub(crate) agent_id: String,
    pub(crate) agent_type: AgentType,
    pub(crate) session: String,
    pub(crate) tmux_pane_id: Option<String>,
    pub(crate) iterm_pane_id: Option<String>,
    pub(crate) at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRow {
    pub(crate) turn_id: String,
    pub(crate) agent_id: String,
    pub(crate) actor: &'static str,
    pub(crate) intent: &'static str,
    pub(crate) text: Option<String>,
    pub(crate) at: Timestamp,
}

pub(super) fn put_reported(tx: &Transaction<'_>, agent: &ReportedAgentRow) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO agents", {
        agent_id: agent.agent_id,
        agent_type: agent.agent_type.as_str(),
        native_session_id: agent.session,
        tmux_pane_id: agent.tmux_pane_id,
        iterm_pane_id: agent.iterm_pane_id,
        updated_at: agent.at.as_microsecond(),
    } "ON CONFLICT (agent_id) DO UPDATE SET tmux_pane_id = coalesce(excluded.tmux_pane_id, tmux_pane_id),
           iterm_pane_id = coalesce(excluded.iterm_pane_id, iterm_pane_id), updated_at = excluded.updated_at")
}

pub(super) fn put_turn(tx: &Transaction<'_>, turn: &TurnRow) -> rusqlite::Result<()> {
    insert!(tx, "INSERT OR IGNORE INTO turns", {
        turn_id: turn.turn_id,
        agent_id: turn.agent_id,
        actor: turn.actor,
        intent: turn.intent,
        text: turn.text,
        at: turn.at.as_microsecond(),
    })
}

/// The pane in which this agent was last seen. `None` if the agent is unknown, `Some(None)` if it has no known pane.
pub(crate) fn pane_of(connection: &Connection, agent_id: &str) -> rusqlite::Result<Option<Option<String>>> {
    let sql = "SELECT tmux_pane_id FROM agents WHERE agent_id = ?1";
    connection.query_row(sql, [agent_id], |row| row.get(0)).optional()
}
