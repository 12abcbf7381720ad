//! Stored runtimes, for `resume` and for references to agents that have ended.

use agtmux_core::ids::{AgentType, Generation, PaneId, ServerKey, ServerName, TargetName, WindowId};
use agtmux_core::refs::PaneRef;
use agtmux_core::runtime::LaunchOptions;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::rows::{launch, parse_column};

/// The last known data of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastRuntime {
    pub(crate) runtime_id: String,
    pub(crate) agent_type: String,
    pub(crate) generation: Generation,
    pub(crate) epoch: u32,
    pub(crate) has_ended: bool,
    pub(crate) is_local: bool,
    /// The native session, and its working directory.
    pub(crate) session: Option<String>,
    pub(crate) cwd: Option<String>,
    /// How the agent was started, and the name that its wrapper gave it.
    pub(crate) launch: LaunchOptions,
    pub(crate) name: Option<String>,
    /// A reference to the pane of the runtime. `None` if the pane no longer exists.
    pub(crate) pane_ref: Option<PaneRef>,
}

/// The longest time from the start of an agent until agtmux detects the agent.
const DETECTION_DELAY: SignedDuration = SignedDuration::from_secs(5);

const SELECT: &str = "SELECT r.runtime_id, r.agent_type, r.server_pid, r.server_start, r.pane_epoch,
           r.ended_at IS NOT NULL, a.native_session_id, a.cwd, r.target_id, r.server, r.pane_id, p.session_name, p.window_id,
           r.launch, r.name
    FROM runtimes r
    LEFT JOIN agents a ON a.agent_id = r.agent_id
    LEFT JOIN servers s ON (s.target_id, s.server, s.pid, s.start_time)
                         = (r.target_id, r.server, r.server_pid, r.server_start)
    LEFT JOIN panes p ON (p.target_id, p.server, p.pane_id) = (s.target_id, s.server, r.pane_id)";

pub(crate) fn by_id(connection: &Connection, runtime_id: &str) -> rusqlite::Result<Option<PastRuntime>> {
    connection.query_row(&format!("{SELECT} WHERE r.runtime_id = ?1"), [runtime_id], past_runtime).optional()
}

/// The last runtime in this pane.
pub(crate) fn last_in(
    connection: &Connection,
    server: &ServerKey,
    generation: Generation,
    pane: PaneId,
) -> rusqlite::Result<Option<PastRuntime>> {
    let sql = format!(
        "{SELECT} WHERE r.target_id = ?1 AND r.server = ?2 AND r.server_pid = ?3 AND r.server_start = ?4
         AND r.pane_id = ?5 ORDER BY r.pane_epoch DESC LIMIT 1"
    );
    let params = params![
        server.target.as_str(),
        server.server.as_str(),
        generation.pid,
        generation.start_time,
        pane.to_string()
    ];
    connection.query_row(&sql, params, past_runtime).optional()
}

/// The last runtime in a pane with this id on any tmux server of this machine. The pane may be closed.
pub(crate) fn last_in_any_pane(connection: &Connection, pane: PaneId) -> rusqlite::Result<Option<PastRuntime>> {
    let sql = format!("{SELECT} WHERE r.target_id = ?1 AND r.pane_id = ?2 ORDER BY r.started_at DESC LIMIT 1");
    connection.query_row(&sql, params![TargetName::LOCAL, pane.to_string()], past_runtime).optional()
}

/// How many ended agents are read at most.
const MAX_ENDED: u32 = 100;

/// The ended agents with this name or type, or in the tmux session with this name, newest first.
pub(crate) fn ended_like(connection: &Connection, word: &str) -> rusqlite::Result<Vec<PastRuntime>> {
    let sql = format!(
        "{SELECT} WHERE r.ended_at IS NOT NULL AND r.agent_type <> ?2
         AND (r.name = ?1 OR r.agent_type = ?1 OR p.session_name = ?1) ORDER BY r.ended_at DESC LIMIT ?3"
    );
    let mut statement = connection.prepare(&sql)?;
    statement.query_map(params![word, AgentType::TASK, MAX_ENDED], past_runtime)?.collect()
}

/// Whether a local agent was running at this time and has ended since. An agent is stored when it is detected, which
/// may be a few seconds after its start.
pub(crate) fn agent_ran_at(connection: &Connection, at: Timestamp) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM runtimes WHERE target_id = ?1 AND agent_type <> ?2
               AND started_at - ?4 <= ?3 AND ended_at >= ?3)";
    let detection_delay = DETECTION_DELAY.as_micros().try_into().unwrap_or(i64::MAX);
    let params = params![TargetName::LOCAL, AgentType::TASK, at.as_microsecond(), detection_delay];
    connection.query_row(sql, params, |row| row.get(0))
}

fn past_runtime(row: &Row<'_>) -> rusqlite::Result<PastRuntime> {
    let session_name: Option<String> = row.get(11)?;
    let pane_ref = match session_name {
        Some(session) => Some(PaneRef::Path {
            target: TargetName::new(row.get::<_, String>(8)?).to_string(),
            server: Some(ServerName::new(row.get::<_, String>(9)?).to_string()),
            session,
            window: parse_column::<WindowId>(row, 12)?,
            pane: parse_column::<PaneId>(row, 10)?,
        }),
        None => None,
    };
    Ok(PastRuntime {
        runtime_id: row.get(0)?,
        agent_type: row.get(1)?,
        generation: Generation { pid: row.get(2)?, start_time: row.get(3)? },
        epoch: row.get(4)?,
        has_ended: row.get(5)?,
        is_local: row.get::<_, String>(8)? == TargetName::LOCAL,
        session: row.get(6)?,
        cwd: row.get(7)?,
        launch: launch(row.get(13)?),
        name: row.get(14)?,
        pane_ref,
    })
}
