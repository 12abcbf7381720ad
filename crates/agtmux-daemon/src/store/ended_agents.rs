//! The agents of this machine that have ended and do not run again.

use agtmux_core::ids::{AgentType, ServerName, TargetName};
use agtmux_core::runtime::LaunchOptions;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::rows::launch;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedAgent {
    pub(crate) runtime_id: String,
    pub(crate) agent_type: String,
    pub(crate) name: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
    pub(crate) launch: LaunchOptions,
    /// The tmux session and window in which the agent ran.
    pub(crate) session_name: Option<String>,
    pub(crate) window_name: Option<String>,
    pub(crate) ended_with_server: bool,
    pub(crate) server: ServerName,
}

/// A session that was started again is left out: a later runtime has the same session, or agtmux itself started it.
const SELECT: &str = "SELECT r.runtime_id, r.agent_type, r.name, a.native_session_id, a.cwd, r.started_at, r.ended_at,
           r.launch, json_extract(r.launch, '$.place.session'), json_extract(r.launch, '$.place.window'),
           COALESCE(json_extract(r.launch, '$.ended_with_server'), 0), r.server
    FROM runtimes r
    LEFT JOIN agents a ON a.agent_id = r.agent_id
    WHERE r.target_id = ?1 AND r.agent_type <> ?2 AND r.ended_at IS NOT NULL
      AND json_extract(r.launch, '$.resumed_as') IS NULL
      AND NOT EXISTS (SELECT 1 FROM runtimes n WHERE n.agent_id = r.agent_id AND n.started_at > r.started_at)";

/// The agents that ended at or after this time, the newest end first.
pub(crate) fn since(connection: &Connection, since: Timestamp, most: u32) -> rusqlite::Result<Vec<EndedAgent>> {
    let sql = format!("{SELECT} AND r.ended_at >= ?3 ORDER BY r.ended_at DESC, r.started_at DESC LIMIT ?4");
    let mut statement = connection.prepare(&sql)?;
    let params = params![TargetName::LOCAL, AgentType::TASK, since.as_microsecond(), most];
    statement.query_map(params, ended_agent)?.collect()
}

/// The ended agent with this id, unless its session was started again.
pub(crate) fn by_id(connection: &Connection, runtime_id: &str) -> rusqlite::Result<Option<EndedAgent>> {
    let mut statement = connection.prepare(&format!("{SELECT} AND r.runtime_id = ?3"))?;
    let mut rows = statement.query_map(params![TargetName::LOCAL, AgentType::TASK, runtime_id], ended_agent)?;
    rows.next().transpose()
}

fn ended_agent(row: &Row<'_>) -> rusqlite::Result<EndedAgent> {
    let time = |column: usize| -> rusqlite::Result<Timestamp> {
        Ok(Timestamp::from_microsecond(row.get(column)?).unwrap_or(Timestamp::UNIX_EPOCH))
    };
    Ok(EndedAgent {
        runtime_id: row.get(0)?,
        agent_type: row.get(1)?,
        name: row.get(2)?,
        session: row.get(3)?,
        cwd: row.get(4)?,
        started_at: time(5)?,
        ended_at: time(6)?,
        launch: launch(row.get(7)?),
        session_name: row.get(8)?,
        window_name: row.get(9)?,
        ended_with_server: row.get(10)?,
        server: ServerName::new(row.get::<_, String>(11)?),
    })
}
