//! Writes changes to the tables, and reads the stored data back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agtmux_agents::native::AdapterMemory;
use agtmux_core::binding::BindFailure;
use agtmux_core::fleet::{Fleet, Pane, PaneKey, Placement, Server};
use agtmux_core::ids::{
    AgentType, Generation, PaneId, ProcessRef, ServerKey, ServerName, SessionId, TargetName, WindowId,
};
use agtmux_core::resolver::StateResolver;
use agtmux_core::runtime::{LaunchOptions, Runtime, RuntimeId, StateRecord};
use agtmux_core::state::ReasonCode;
use agtmux_core::target::Target;
use agtmux_core::task::{RunId, TaskEvent};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreContents;
use super::actions::{self, ActionRow, SnapshotRow};
use super::agents::{self, ReportedAgentRow, TurnRow};
use super::events::{self, EventRow};
use super::insert::insert;
use super::log::{self, LoggedInput};
use super::tasks::{self, TaskRunRow, TaskSession, TaskSessionKey};
use super::{clock, cursors, memories, targets};
use crate::clock::ClockAnchor;

/// One write. Several writes form a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChange {
    PutTarget {
        target: TargetName,
        healthy: bool,
        at: Timestamp,
    },
    /// A remote host to watch from now on.
    PutSshTarget(Target),
    DropTarget(TargetName),
    PutServer {
        key: ServerKey,
        generation: Generation,
        healthy: bool,
        at: Timestamp,
    },
    DropServer {
        key: ServerKey,
        at: Timestamp,
    },
    /// An ended agent was started again as another runtime.
    NoteResumed {
        old: RuntimeId,
        new: RuntimeId,
    },
    PutPane(Box<PaneRecord>),
    DropPane(PaneKey),
    EndRuntime {
        id: RuntimeId,
        at: Timestamp,
    },
    PutState {
        pane: PaneKey,
        runtime: RuntimeId,
        record: StateRecord,
    },
    PutAgent {
        agent_id: String,
        agent_type: AgentType,
        session: String,
        runtime: RuntimeId,
        cwd: Option<String>,
        at: Timestamp,
    },
    PutAdapter {
        name: String,
        enabled: bool,
        at: Timestamp,
    },
    PutMemory {
        runtime: RuntimeId,
        memory: Box<AdapterMemory>,
    },
    PutEvent {
        event: Box<EventRow>,
        /// The whole request, redacted. The daemon does not keep it in memory.
        body: Option<String>,
    },
    BindEvent {
        event: Box<EventRow>,
        runtime: RuntimeId,
    },
    DropEvent {
        event_id: String,
        why: BindFailure,
    },
    PutSnapshot(Box<SnapshotRow>),
    PutAction(Box<ActionRow>),
    PutTurn(Box<TurnRow>),
    /// An agent that a hook reported, inside or outside tmux.
    PutReportedAgent(Box<ReportedAgentRow>),
    PutTaskRun(TaskSessionKey, Box<TaskRunRow>),
    DropTaskRun(RunId),
    PutTaskMachine(TaskSessionKey, Arc<TaskSession>),
    PutTaskEvent {
        socket: String,
        event: Box<TaskEvent>,
    },
    LogInput(Box<LoggedInput>),
    Checkpoint {
        input_seq: u64,
        at: Timestamp,
        resolver: Box<StateResolver>,
        /// Whether earlier inputs were lost because they could not be stored.
        after_loss: bool,
    },
    /// Lets the writer thread delete data from before these times, and the oldest data if the database is larger than
    /// `max_bytes`. The deletion begins after the batch is committed.
    Purge {
        payloads_before: Timestamp,
        all_before: Timestamp,
        max_bytes: u64,
    },
    /// Reserves all sequence numbers up to this one. After a restart, the daemon uses larger numbers only.
    ReserveSeq(u64),
    /// Stores the current clock setting. Moves the stored times by `by`, the amount by which the clock was set since
    /// they were written.
    SetClock {
        by: SignedDuration,
        now: Timestamp,
        anchor: ClockAnchor,
    },
}

/// The stored part of a pane. Titles and commands change too often to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaneRecord {
    pub(crate) key: PaneKey,
    pub(crate) generation: Generation,
    pub(crate) session: SessionId,
    pub(crate) session_name: String,
    pub(crate) window: WindowId,
    pub(crate) window_name: String,
    pub(crate) epoch: u32,
    pub(crate) pid: u32,
    pub(crate) runtime: Option<Runtime>,
}

impl PaneRecord {
    pub(crate) fn of(key: &PaneKey, generation: Generation, pane: &Pane) -> Self {
        let placement = pane.placements.first();
        Self {
            key: key.clone(),
            generation,
            session: placement.map_or(SessionId(0), |p| p.session),
            session_name: placement.map(|p| p.session_name.clone()).unwrap_or_default(),
            window: pane.window,
            window_name: pane.window_name.clone(),
            epoch: pane.epoch,
            pid: pane.pid,
            runtime: pane.runtime.clone(),
        }
    }
}

pub(super) fn write(tx: &Transaction<'_>, change: &StoreChange, now: Timestamp) -> rusqlite::Result<()> {
    match change {
        StoreChange::PutTarget { target, healthy, at } => {
            let at = at.as_microsecond();
            insert!(tx, "INSERT INTO targets", {
                target_id: target.as_str(),
                target_name: target.as_str(),
                kind: "local",
                is_default: 1,
                last_seen_at: at,
                health: if *healthy { "ok" } else { "down" },
                updated_at: at,
            } "ON CONFLICT (target_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, health = excluded.health,
                   updated_at = excluded.updated_at")?;
        }
        StoreChange::PutSshTarget(target) => targets::put(tx, target, now)?,
        StoreChange::DropTarget(name) => targets::remove(tx, name)?,
        StoreChange::PutServer { key, generation, healthy, at } => {
            mark_ended_with_server(tx, key, Some(*generation), *at)?;
            insert!(tx, "INSERT OR REPLACE INTO servers", {
                target_id: key.target.as_str(),
                server: key.server.as_str(),
                pid: generation.pid,
                start_time: generation.start_time,
                health: if *healthy { "ok" } else { "down" },
                updated_at: at.as_microsecond(),
            })?;
        }
        StoreChange::DropServer { key, at } => {
            mark_ended_with_server(tx, key, None, *at)?;
            let server_params = params![key.target.as_str(), key.server.as_str()];
            tx.prepare_cached("DELETE FROM servers WHERE target_id = ?1 AND server = ?2")?.execute(server_params)?;
        }
        StoreChange::PutPane(record) => put_pane(tx, record, now)?,
        StoreChange::DropPane(key) => {
            let pane = pane_params(key);
            end_other_runtimes(tx, pane.each_ref().map(String::as_str), None, now)?;
            tx.prepare_cached("DELETE FROM panes WHERE target_id = ?1 AND server = ?2 AND pane_id = ?3")?
                .execute(pane.each_ref().map(|p| p as &dyn rusqlite::ToSql))?;
        }
        StoreChange::EndRuntime { id, at } => {
            tx.prepare_cached(END_RUNTIME)?.execute(params![id.as_str(), at.as_microsecond()])?;
            tx.prepare_cached("DELETE FROM states WHERE runtime_id = ?1")?.execute([id.as_str()])?;
        }
        StoreChange::NoteResumed { old, new } => {
            let note = "UPDATE runtimes SET launch = json_set(COALESCE(launch, '{}'), '$.resumed_as', ?2) WHERE runtime_id = ?1";
            tx.prepare_cached(note)?.execute(params![old.as_str(), new.as_str()])?;
        }
        StoreChange::PutState { pane, runtime, record } => put_state(tx, pane, runtime, record)?,
        StoreChange::PutAgent { agent_id, agent_type, session, runtime, cwd, at } => {
            memories::put_agent(tx, agent_id, agent_type, session, runtime, cwd.as_deref(), *at)?;
        }
        StoreChange::PutAdapter { name, enabled, at } => memories::put_adapter(tx, name, *enabled, *at)?,
        StoreChange::PutMemory { runtime, memory } => memories::put(tx, runtime, memory)?,
        StoreChange::PutEvent { event, body } => events::put(tx, event, body.as_deref())?,
        StoreChange::BindEvent { event, runtime } => events::bind(tx, event, runtime)?,
        StoreChange::DropEvent { event_id, why } => events::discard(tx, event_id, why.as_str())?,
        StoreChange::PutSnapshot(row) => actions::put_snapshot(tx, row)?,
        StoreChange::PutAction(row) => actions::put(tx, row)?,
        StoreChange::PutTurn(row) => agents::put_turn(tx, row)?,
        StoreChange::PutReportedAgent(seen) => agents::put_reported(tx, seen)?,
        StoreChange::PutTaskRun(key, run) => tasks::put_run(tx, key, run)?,
        StoreChange::DropTaskRun(run_id) => tasks::drop_run(tx, run_id)?,
        StoreChange::PutTaskMachine(key, session) => tasks::put_machine(tx, key, &session.machine)?,
        StoreChange::PutTaskEvent { socket, event } => tasks::put_event(tx, socket, event)?,
        StoreChange::LogInput(logged) => log::write(tx, logged)?,
        StoreChange::Checkpoint { input_seq, at, resolver, after_loss } => {
            log::write_checkpoint(tx, *input_seq, *at, resolver, *after_loss)?;
        }
        StoreChange::Purge { .. } => {}
        StoreChange::ReserveSeq(seq) => {
            tx.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES ('seq_reserved', ?1)")?
                .execute([seq.to_string()])?;
        }
        StoreChange::SetClock { by, now, anchor } => clock::set(tx, *by, *now, anchor)?,
    }
    Ok(())
}

/// Ends a runtime, and notes where its pane was, because the row of the pane may be removed next.
const END_RUNTIME: &str = "UPDATE runtimes SET ended_at = ?2, launch = json_set(COALESCE(launch, '{}'), '$.place',
        json((SELECT json_object('session', p.session_name, 'window', p.window_name) FROM panes p
              WHERE (p.target_id, p.server, p.pane_id) = (runtimes.target_id, runtimes.server, runtimes.pane_id))))
    WHERE runtime_id = ?1 AND ended_at IS NULL";

/// The processes of a server end shortly before the daemon sees that the server has ended.
const SERVER_END_DELAY: SignedDuration = SignedDuration::from_secs(5);

/// Marks the runtimes that ended with their server, which ended at this time: it is gone, or another generation runs.
fn mark_ended_with_server(
    tx: &Transaction<'_>,
    key: &ServerKey,
    now_runs: Option<Generation>,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let mark = "UPDATE runtimes SET launch = json_set(COALESCE(launch, '{}'), '$.ended_with_server', 1)
        WHERE target_id = ?1 AND server = ?2 AND ended_at BETWEEN ?6 AND ?3 AND (server_pid, server_start) IS NOT (?4, ?5)";
    let (pid, start) = now_runs.map(|generation| (generation.pid, generation.start_time)).unzip();
    let (target, server) = (key.target.as_str(), key.server.as_str());
    let since = at.checked_sub(SERVER_END_DELAY).unwrap_or(at).as_microsecond();
    tx.prepare_cached(mark)?.execute(params![target, server, at.as_microsecond(), pid, start, since]).map(drop)
}

fn pane_params(key: &PaneKey) -> [String; 3] {
    [key.server.target.as_str().to_owned(), key.server.server.as_str().to_owned(), key.pane.to_string()]
}

fn put_pane(tx: &Transaction<'_>, record: &PaneRecord, now: Timestamp) -> rusqlite::Result<()> {
    let [target, server, pane] = pane_params(&record.key);
    insert!(tx, "INSERT OR REPLACE INTO panes", {
        target_id: target,
        server: server,
        pane_id: pane,
        session_id: record.session.to_string(),
        session_name: record.session_name,
        window_id: record.window.to_string(),
        window_name: record.window_name,
        pane_epoch: record.epoch,
        pid: record.pid,
        updated_at: now.as_microsecond(),
    })?;
    end_other_runtimes(tx, [&target, &server, &pane], record.runtime.as_ref(), now)?;
    let Some(runtime) = &record.runtime else { return Ok(()) };
    free_pane_epoch(tx, record, runtime)?;
    insert!(tx, "INSERT INTO runtimes", {
        runtime_id: runtime.id.as_str(),
        target_id: target,
        server: server,
        server_pid: record.generation.pid,
        server_start: record.generation.start_time,
        pane_id: pane,
        pane_epoch: record.epoch,
        agent_type: runtime.agent_type.as_str(),
        pid: runtime.process.pid,
        pid_start: runtime.process.start.cast_signed(),
        started_at: runtime.started_at.as_microsecond(),
        name: runtime.name,
        launch: serde_json::to_string(&runtime.launch).ok(),
    } "ON CONFLICT (runtime_id) DO UPDATE SET ended_at = NULL, name = excluded.name")
}

/// Changes the pane epoch of an ended runtime if a new runtime in the same pane has the same epoch. Two such runtimes
/// exist after a server was lost and found again, because the pane epochs of the server then start over.
fn free_pane_epoch(tx: &Transaction<'_>, record: &PaneRecord, runtime: &Runtime) -> rusqlite::Result<()> {
    let [target, server, pane] = pane_params(&record.key);
    tx.prepare_cached(
        "UPDATE runtimes SET pane_epoch = 1000000000 + rowid
         WHERE target_id = ?1 AND server = ?2 AND server_pid = ?3 AND server_start = ?4 AND pane_id = ?5
           AND pane_epoch = ?6 AND runtime_id <> ?7 AND ended_at <= ?8",
    )?
    .execute(params![
        target,
        server,
        record.generation.pid,
        record.generation.start_time,
        pane,
        record.epoch,
        runtime.id.as_str(),
        runtime.started_at.as_microsecond()
    ])
    .map(drop)
}

fn put_state(tx: &Transaction<'_>, pane: &PaneKey, runtime: &RuntimeId, record: &StateRecord) -> rusqlite::Result<()> {
    let [target, server, pane] = pane_params(pane);
    insert!(tx, "INSERT OR REPLACE INTO states", {
        target_id: target,
        server: server,
        pane_id: pane,
        runtime_id: runtime.as_str(),
        state: record.state.as_str(),
        reason_code: record.reason.map(ReasonCode::as_str),
        confidence: record.confidence.as_str(),
        state_version: record.version.cast_signed(),
        since: record.since.as_microsecond(),
        last_seen_at: record.updated_at.as_microsecond(),
        updated_at: record.updated_at.as_microsecond(),
    })
}

/// Ends all runtimes of the pane except the current one. Usually `EndRuntime` has already ended them. If `EndRuntime`
/// was not written, the old runtime would prevent the new one from being stored.
fn end_other_runtimes(
    tx: &Transaction<'_>,
    [target, server, pane]: [&str; 3],
    current: Option<&Runtime>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let current = current.map(|runtime| runtime.id.as_str());
    let condition = "target_id = ?1 AND server = ?2 AND pane_id = ?3 AND runtime_id IS NOT ?4";
    tx.prepare_cached(&format!("UPDATE runtimes SET ended_at = ?5 WHERE {condition} AND ended_at IS NULL"))?
        .execute(params![target, server, pane, current, now.as_microsecond()])?;
    tx.prepare_cached(&format!("DELETE FROM states WHERE {condition}"))?
        .execute(params![target, server, pane, current])?;
    Ok(())
}

pub(super) fn read_contents(connection: &Connection) -> rusqlite::Result<StoreContents> {
    let seq: Option<String> =
        connection.query_row("SELECT value FROM meta WHERE key = 'seq_reserved'", [], |row| row.get(0)).optional()?;
    let (mut last_input_seq, mut states) = match log::last_checkpoint(connection)? {
        Some((input_seq, resolver)) => (input_seq, Some(resolver)),
        None => (0, None),
    };
    for (input_seq, at, input) in log::inputs_after(connection, last_input_seq)? {
        if let Some(resolver) = &mut states {
            resolver.apply(input, at);
        }
        last_input_seq = input_seq;
    }
    let seq = seq.and_then(|s| s.parse().ok()).unwrap_or(0);
    Ok(StoreContents {
        fleet: restore_fleet(connection)?,
        seq,
        states,
        last_input_seq,
        newest_input_at: log::newest_input_at(connection)?,
        clock_anchor: clock::anchor(connection)?,
        unbound_events: events::unbound(connection)?,
        cursors: cursors::all(connection)?,
        memories: memories::all(connection)?,
        disabled_adapters: memories::disabled(connection)?,
        tasks: tasks::sessions(connection)?,
    })
}

/// The fleet as it was when the previous daemon stopped. A server may be out of date until it is listed for the first
/// time.
fn restore_fleet(connection: &Connection) -> rusqlite::Result<Fleet> {
    let mut fleet = Fleet::default();
    let mut servers: BTreeMap<ServerKey, Server> = BTreeMap::new();
    let mut statement = connection.prepare("SELECT target_id, server, pid, start_time FROM servers")?;
    let rows = statement.query_map([], |row| {
        let generation = Generation { pid: row.get(2)?, start_time: row.get(3)? };
        Ok((server_key(row)?, Server { generation, outage: None, panes: BTreeMap::new() }))
    })?;
    for row in rows {
        let (key, server) = row?;
        servers.insert(key, server);
    }
    let mut statement = connection.prepare(
        "SELECT p.target_id, p.server, p.pane_id, p.session_id, p.session_name, p.window_id, p.window_name, p.pane_epoch,
                p.pid, p.updated_at, r.runtime_id, r.agent_type, r.pid, r.pid_start, r.started_at, r.name, r.launch
         FROM panes p
         LEFT JOIN runtimes r ON (r.target_id, r.server, r.pane_id) = (p.target_id, p.server, p.pane_id)
                              AND r.ended_at IS NULL",
    )?;
    let rows = statement.query_map([], |row| Ok((server_key(row)?, parse_column::<PaneId>(row, 2)?, pane(row)?)))?;
    for row in rows {
        let (key, id, pane) = row?;
        if let Some(server) = servers.get_mut(&key) {
            server.panes.insert(id, pane);
        }
    }
    servers.into_iter().for_each(|(key, server)| fleet.restore(key, server));
    Ok(fleet)
}

fn server_key(row: &Row<'_>) -> rusqlite::Result<ServerKey> {
    let (target, server): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(ServerKey { target: TargetName::new(target), server: ServerName::new(server) })
}

fn pane(row: &Row<'_>) -> rusqlite::Result<Pane> {
    let placement = Placement { session: parse_column(row, 3)?, session_name: row.get(4)?, window_index: 0 };
    let runtime = match row.get::<_, Option<String>>(10)? {
        Some(id) => Some(runtime(row, id)?),
        None => None,
    };
    Ok(Pane {
        epoch: row.get(7)?,
        pid: row.get(8)?,
        tty: String::new(),
        window: parse_column(row, 5)?,
        window_name: row.get(6)?,
        pane_index: 0,
        title: String::new(),
        dead: None,
        placements: BTreeSet::from([placement]),
        foreground: None,
        runtime,
        updated_at: timestamp_column(row, 9)?,
    })
}

fn runtime(row: &Row<'_>, id: String) -> rusqlite::Result<Runtime> {
    Ok(Runtime {
        id: RuntimeId::from_stored(id),
        agent_type: AgentType::new(row.get::<_, String>(11)?),
        name: row.get(15)?,
        process: ProcessRef { pid: row.get(12)?, start: row.get::<_, i64>(13)?.cast_unsigned() },
        // The next process check sets this field.
        suspended: false,
        started_at: timestamp_column(row, 14)?,
        launch: launch(row.get(16)?),
    })
}

/// The stored launch options. Older versions stored none.
pub(super) fn launch(stored: Option<String>) -> LaunchOptions {
    stored.and_then(|stored| serde_json::from_str(&stored).ok()).unwrap_or_default()
}

pub(super) fn parse_column<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse()
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}

pub(super) fn json_column<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(&row.get::<_, String>(column)?)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}

pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| unreachable!("our own types serialize: {error}"))
}

pub(super) fn timestamp_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(row.get(column)?)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Integer, Box::new(e)))
}
