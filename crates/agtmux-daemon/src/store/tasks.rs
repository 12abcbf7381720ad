//! Task events, and the state machine and runs of each task session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agtmux_api::wire::TaskEventsQuery;
use agtmux_core::ids::{Generation, PaneId, ProcessRef, WindowId};
use agtmux_core::task::{RunId, TaskEvent, TaskMachine, TaskSessionName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::insert::insert;
use super::open_reader;
use super::rows::{json_column, parse_column, timestamp_column, to_json};
use crate::file_identity::FileIdentity;

/// Identifies a task session: the tmux server's socket and the session name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TaskSessionKey {
    pub(crate) socket: String,
    pub(crate) session: TaskSessionName,
}

/// One run of a task. The end of the run has not been reported yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRunRow {
    pub(crate) run_id: RunId,
    pub(crate) task: String,
    pub(crate) generation: Generation,
    pub(crate) window: WindowId,
    pub(crate) pane: PaneId,
    pub(crate) process: ProcessRef,
    pub(crate) launched_at: Timestamp,
}

/// The state machine of a task session, and its unfinished runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskSession {
    pub(crate) machine: TaskMachine,
    pub(crate) runs: BTreeMap<RunId, TaskRunRow>,
}

impl TaskSession {
    pub(crate) fn new(name: TaskSessionName) -> Self {
        Self { machine: TaskMachine::new(name), runs: BTreeMap::new() }
    }
}

pub(super) fn put_run(tx: &Transaction<'_>, key: &TaskSessionKey, run: &TaskRunRow) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO task_runs", {
        run_id: run.run_id.as_str(),
        socket: key.socket,
        session: key.session.as_str(),
        task: run.task,
        server_pid: run.generation.pid,
        server_start: run.generation.start_time,
        window_id: run.window.to_string(),
        pane_id: run.pane.to_string(),
        pid: run.process.pid,
        pid_start: run.process.start.cast_signed(),
        launched_at: run.launched_at.as_microsecond(),
        ended: 0,
    } "ON CONFLICT (run_id) DO NOTHING")
}

pub(super) fn drop_run(tx: &Transaction<'_>, run_id: &RunId) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM task_runs WHERE run_id = ?1")?.execute([run_id.as_str()]).map(drop)
}

/// Stores the state machine of a session. If the machine has no windows, deletes the stored one instead.
pub(super) fn put_machine(tx: &Transaction<'_>, key: &TaskSessionKey, machine: &TaskMachine) -> rusqlite::Result<()> {
    if machine.is_empty() {
        let mut delete = tx.prepare_cached("DELETE FROM task_machines WHERE socket = ?1 AND session = ?2")?;
        return delete.execute(params![key.socket, key.session.as_str()]).map(drop);
    }
    insert!(tx, "INSERT OR REPLACE INTO task_machines", {
        socket: key.socket,
        session: key.session.as_str(),
        machine: to_json(machine),
    })
}

pub(super) fn put_event(tx: &Transaction<'_>, socket: &str, event: &TaskEvent) -> rusqlite::Result<()> {
    insert!(tx, "INSERT INTO task_events", {
        seq: event.seq.cast_signed(),
        at: event.at.as_microsecond(),
        socket: socket,
        session: event.session.as_str(),
        task: event.task,
        run_id: event.run_id.as_ref().map(RunId::as_str),
        document: to_json(event),
    })
}

/// All task sessions, so that the daemon can continue with them after a restart. Sessions that this version cannot read
/// are left out.
pub(super) fn sessions(connection: &Connection) -> rusqlite::Result<BTreeMap<TaskSessionKey, TaskSession>> {
    let mut sessions = BTreeMap::new();
    let mut statement = connection.prepare("SELECT socket, machine FROM task_machines")?;
    let machines = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    for machine in machines {
        let (socket, text) = machine?;
        let Ok(machine) = serde_json::from_str::<TaskMachine>(&text) else { continue };
        let key = TaskSessionKey { socket, session: machine.session().clone() };
        sessions.insert(key, TaskSession { machine, runs: BTreeMap::new() });
    }
    let sql = "SELECT run_id, task, server_pid, server_start, window_id, pane_id, pid, pid_start, launched_at, socket,
                      session FROM task_runs";
    let mut statement = connection.prepare(sql)?;
    let runs = statement.query_map([], |row| Ok((run(row)?, row.get(9)?, row.get::<_, String>(10)?)))?;
    for row in runs {
        let (run, socket, session) = row?;
        let Ok(session) = session.parse::<TaskSessionName>() else { continue };
        let key = TaskSessionKey { socket, session: session.clone() };
        let session = sessions.entry(key).or_insert_with(|| TaskSession::new(session));
        session.runs.insert(run.run_id.clone(), run);
    }
    Ok(sessions)
}

fn run(row: &Row<'_>) -> rusqlite::Result<TaskRunRow> {
    Ok(TaskRunRow {
        run_id: parse_column(row, 0)?,
        task: row.get(1)?,
        generation: Generation { pid: row.get(2)?, start_time: row.get(3)? },
        window: parse_column(row, 4)?,
        pane: parse_column(row, 5)?,
        process: ProcessRef { pid: row.get(6)?, start: row.get::<_, i64>(7)?.cast_unsigned() },
        launched_at: timestamp_column(row, 8)?,
    })
}

/// The most events per read.
const MAX_EVENTS: u32 = 1000;

/// Reads task events. All readers share one connection.
#[derive(Debug)]
pub(crate) struct TaskArchive {
    path: PathBuf,
    /// The open connection, and the file that it reads.
    connection: Mutex<Option<(Option<FileIdentity>, Connection)>>,
}

impl TaskArchive {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), connection: Mutex::default() }
    }

    /// The sequence number of the last event.
    pub(crate) fn last_seq(&self) -> rusqlite::Result<u64> {
        self.read(|connection| {
            let last: Option<i64> = connection.query_row("SELECT max(seq) FROM task_events", [], |row| row.get(0))?;
            Ok(last.unwrap_or(0).cast_unsigned())
        })
    }

    /// The events that match the query, oldest first. If there are more than the limit, returns the first ones after
    /// `after`. If the query has no `after`, returns the newest ones.
    pub(crate) fn events(&self, query: &TaskEventsQuery) -> rusqlite::Result<Vec<TaskEvent>> {
        self.read(|connection| events(connection, query))
    }

    /// Runs a query on the shared connection. A connection that failed, or that reads a removed file, is not reused.
    fn read<T>(&self, query_fn: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut cached = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let file = FileIdentity::at(&self.path);
        let connection = match cached.take() {
            Some((known, connection)) if known == file => connection,
            _ => open_reader(&self.path)?,
        };
        let answer = query_fn(&connection)?;
        *cached = Some((file, connection));
        Ok(answer)
    }
}

fn events(connection: &Connection, query: &TaskEventsQuery) -> rusqlite::Result<Vec<TaskEvent>> {
    let order = if query.after.is_some() { "ASC" } else { "DESC" };
    let sql = format!(
        "SELECT document FROM task_events
         WHERE seq > ?1 AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR socket = ?3) AND (?4 IS NULL OR task = ?4)
               AND (?5 IS NULL OR run_id = ?5)
         ORDER BY seq {order} LIMIT ?6"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let limit = query.limit.unwrap_or(MAX_EVENTS).min(MAX_EVENTS);
    let after = query.after.unwrap_or(0).min(i64::MAX.unsigned_abs()).cast_signed();
    let params = params![after, query.session, query.socket, query.task, query.run_id, limit];
    let rows = statement.query_map(params, |row| json_column(row, 0))?;
    let mut events = rows.collect::<rusqlite::Result<Vec<TaskEvent>>>()?;
    if query.after.is_none() {
        events.reverse();
    }
    Ok(events)
}

/// The pid and the start time of the process that supervises this run. `None` if the run is not stored.
pub(crate) fn process_of_run(connection: &Connection, run: &str) -> rusqlite::Result<Option<(u32, u64)>> {
    let sql = "SELECT pid, pid_start FROM task_runs WHERE run_id = ?1";
    let process = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()));
    connection.query_row(sql, [run], process).optional()
}
