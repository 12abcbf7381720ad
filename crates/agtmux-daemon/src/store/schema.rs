//! The tables. Never edit a migration that has been released. Add a new migration instead.

use rusqlite_migration::{M, Migrations};

/// Times are microseconds since the epoch, UTC.
const FIRST: &str = "
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE targets (
    target_id      TEXT PRIMARY KEY,
    target_name    TEXT NOT NULL UNIQUE,
    kind           TEXT NOT NULL CHECK (kind IN ('local', 'ssh')),
    connection_ref TEXT,
    is_default     INTEGER NOT NULL DEFAULT 0,
    last_seen_at   INTEGER,
    health         TEXT NOT NULL CHECK (health IN ('ok', 'degraded', 'down')),
    updated_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE servers (
    target_id  TEXT NOT NULL,
    server     TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    start_time INTEGER NOT NULL,
    health     TEXT NOT NULL CHECK (health IN ('ok', 'down')),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (target_id, server)
) STRICT;

CREATE TABLE panes (
    target_id    TEXT NOT NULL,
    server       TEXT NOT NULL,
    pane_id      TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    session_name TEXT NOT NULL,
    window_id    TEXT NOT NULL,
    window_name  TEXT NOT NULL,
    pane_epoch   INTEGER NOT NULL,
    pid          INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (target_id, server, pane_id)
) STRICT;

CREATE TABLE agents (
    agent_id          TEXT PRIMARY KEY,
    agent_type        TEXT NOT NULL,
    native_session_id TEXT NOT NULL,
    tmux_pane_id      TEXT,
    iterm_pane_id     TEXT,
    updated_at        INTEGER NOT NULL,
    UNIQUE (agent_type, native_session_id)
) STRICT;

CREATE TABLE runtimes (
    runtime_id   TEXT PRIMARY KEY,
    target_id    TEXT NOT NULL,
    server       TEXT NOT NULL,
    server_pid   INTEGER NOT NULL,
    server_start INTEGER NOT NULL,
    pane_id      TEXT NOT NULL,
    pane_epoch   INTEGER NOT NULL,
    agent_type   TEXT NOT NULL,
    agent_id     TEXT REFERENCES agents (agent_id),
    pid          INTEGER,
    pid_start    INTEGER,
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    UNIQUE (target_id, server, server_pid, server_start, pane_id, pane_epoch)
) STRICT;

CREATE UNIQUE INDEX one_current_runtime_per_pane ON runtimes (target_id, server, pane_id) WHERE ended_at IS NULL;

CREATE TABLE states (
    target_id       TEXT NOT NULL,
    server          TEXT NOT NULL,
    pane_id         TEXT NOT NULL,
    runtime_id      TEXT NOT NULL REFERENCES runtimes (runtime_id),
    state           TEXT NOT NULL,
    reason_code     TEXT,
    confidence      TEXT NOT NULL,
    state_version   INTEGER NOT NULL,
    last_source_seq INTEGER,
    since           INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (target_id, server, pane_id)
) STRICT;

CREATE TABLE events (
    event_id        TEXT PRIMARY KEY,
    runtime_id      TEXT,
    status          TEXT NOT NULL CHECK (status IN ('bound', 'pending_bind', 'dropped_unbound')),
    drop_reason     TEXT,
    event_type      TEXT NOT NULL,
    source          TEXT NOT NULL,
    source_event_id TEXT,
    source_seq      INTEGER,
    event_time      INTEGER NOT NULL,
    ingested_at     INTEGER NOT NULL,
    dedupe_key      TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    whereabouts     TEXT,
    raw_payload     TEXT
) STRICT;

CREATE UNIQUE INDEX one_event_per_key ON events (runtime_id, source, dedupe_key) WHERE runtime_id IS NOT NULL;
CREATE INDEX events_by_arrival ON events (ingested_at);
CREATE INDEX events_waiting ON events (status) WHERE status = 'pending_bind';

CREATE TABLE runtime_source_cursors (
    runtime_id             TEXT NOT NULL,
    source                 TEXT NOT NULL,
    last_source_seq        INTEGER,
    last_order_event_time  INTEGER NOT NULL,
    last_order_ingested_at INTEGER NOT NULL,
    last_order_event_id    TEXT NOT NULL,
    PRIMARY KEY (runtime_id, source)
) STRICT;

CREATE TABLE observations (
    n        INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    event_id TEXT,
    input    TEXT NOT NULL
) STRICT;

CREATE TABLE transitions (
    seq           INTEGER PRIMARY KEY,
    n             INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    runtime_id    TEXT NOT NULL,
    from_state    TEXT,
    state         TEXT NOT NULL,
    reason_code   TEXT,
    confidence    TEXT NOT NULL,
    state_version INTEGER NOT NULL
) STRICT;

CREATE INDEX transitions_of_runtime ON transitions (runtime_id, seq);

CREATE TABLE checkpoints (
    n      INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    engine TEXT NOT NULL
) STRICT;

CREATE TABLE action_snapshots (
    snapshot_id   TEXT PRIMARY KEY,
    target_id     TEXT NOT NULL,
    server        TEXT NOT NULL,
    pane_id       TEXT NOT NULL,
    runtime_id    TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    observed_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    nonce         TEXT NOT NULL
) STRICT;

CREATE TABLE adapters (
    adapter_name TEXT PRIMARY KEY,
    agent_type   TEXT NOT NULL,
    version      TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    enabled      INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
";

/// What an adapter remembers about a runtime.
const MEMORIES: &str = "ALTER TABLE runtimes ADD COLUMN memory TEXT;";

/// The audit log, and the snapshots that guard actions.
const ACTIONS: &str = "
DROP TABLE action_snapshots;

CREATE TABLE action_snapshots (
    snapshot_id   TEXT PRIMARY KEY,
    target_id     TEXT NOT NULL,
    server        TEXT NOT NULL,
    server_pid    INTEGER NOT NULL,
    server_start  INTEGER NOT NULL,
    pane_id       TEXT NOT NULL,
    pane_epoch    INTEGER NOT NULL,
    pane_pid      INTEGER NOT NULL,
    runtime_id    TEXT,
    state_version INTEGER,
    fingerprint   TEXT,
    observed_at   INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    nonce         TEXT NOT NULL
) STRICT;

CREATE INDEX action_snapshots_by_age ON action_snapshots (expires_at);

CREATE TABLE actions (
    action_id    TEXT PRIMARY KEY,
    kind         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('begun', 'done', 'refused', 'failed')),
    request_ref  TEXT,
    content_hash TEXT NOT NULL,
    runtime_id   TEXT,
    snapshot_id  TEXT,
    record       TEXT NOT NULL
) STRICT;

CREATE INDEX actions_by_age ON actions (at);
CREATE UNIQUE INDEX one_action_per_request ON actions (request_ref) WHERE request_ref IS NOT NULL;
";

/// Adds the working directory of an agent's session, which `resume` needs, and the name that a wrapper gave the agent.
const PLACES: &str = "
ALTER TABLE agents ADD COLUMN cwd TEXT;
ALTER TABLE runtimes ADD COLUMN name TEXT;
";

/// The turns of conversations. Each turn has an actor, an intent and a text.
const TURNS: &str = "
CREATE TABLE turns (
    turn_id  TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    actor    TEXT NOT NULL CHECK (actor IN ('USER', 'AGENT')),
    intent   TEXT NOT NULL,
    text     TEXT,
    at       INTEGER NOT NULL
) STRICT;

CREATE INDEX turns_of_agent ON turns (agent_id, at);
CREATE INDEX turns_by_age ON turns (at);
";

/// Task runs, task events, and the state machine of each task session.
const TASKS: &str = "
CREATE TABLE task_runs (
    run_id       TEXT PRIMARY KEY,
    socket       TEXT NOT NULL,
    session      TEXT NOT NULL,
    task         TEXT NOT NULL,
    server_pid   INTEGER NOT NULL,
    server_start INTEGER NOT NULL,
    window_id    TEXT NOT NULL,
    pane_id      TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    pid_start    INTEGER NOT NULL,
    launched_at  INTEGER NOT NULL,
    ended        INTEGER NOT NULL
) STRICT;

CREATE TABLE task_machines (
    socket  TEXT NOT NULL,
    session TEXT NOT NULL,
    machine TEXT NOT NULL,
    PRIMARY KEY (socket, session)
) STRICT;

CREATE TABLE task_events (
    seq      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    socket   TEXT NOT NULL,
    session  TEXT NOT NULL,
    task     TEXT NOT NULL,
    run_id   TEXT,
    document TEXT NOT NULL
) STRICT;

CREATE INDEX task_events_by_age ON task_events (at);
CREATE INDEX task_events_of_run ON task_events (run_id);
";

/// Renames tables and columns to plain names. `input_seq` numbers the inputs of the engine. `seq` numbers the
/// transitions and events that are published.
const PLAIN_NAMES: &str = "
ALTER TABLE observations RENAME TO engine_inputs;
ALTER TABLE engine_inputs RENAME COLUMN n TO input_seq;
ALTER TABLE transitions RENAME COLUMN n TO input_seq;
ALTER TABLE checkpoints RENAME COLUMN n TO input_seq;
ALTER TABLE checkpoints RENAME COLUMN engine TO resolver;
ALTER TABLE events RENAME COLUMN whereabouts TO origin;
ALTER TABLE runtimes RENAME COLUMN memory TO adapter_state;
";

/// The sender of each event, as JSON.
const SENDERS: &str = "
ALTER TABLE events ADD COLUMN sender TEXT;
";

/// How an agent was started, which `resume` needs.
const LAUNCHES: &str = "ALTER TABLE runtimes ADD COLUMN launch TEXT;";

/// Compressed payloads. Rows that an older agtmux wrote have an uncompressed payload in `raw_payload`.
const COMPRESSED_PAYLOADS: &str = "ALTER TABLE events ADD COLUMN payload BLOB;";

const ALL: &[M<'static>] = &[
    M::up(FIRST),
    M::up(MEMORIES),
    M::up(ACTIONS),
    M::up(PLACES),
    M::up(TURNS),
    M::up(TASKS),
    M::up(PLAIN_NAMES),
    M::up(SENDERS),
    M::up(LAUNCHES),
    M::up(COMPRESSED_PAYLOADS),
];

pub(crate) const VERSION: u32 = ALL.len() as u32;

pub(super) const MIGRATIONS: Migrations<'static> = Migrations::from_slice(ALL);
