//! Tests of the engine with a real store and without tmux.

mod adapters;
mod clock;
mod collect;
mod cursors;
mod dialog_holds;
mod ended_runtimes;
mod purge;
mod remote_limits;
mod submissions;
mod tasks;
mod turn_end_holds;
mod unbound;
mod write_failures;

use std::collections::BTreeMap;
use std::time::Duration;

use agtmux_api::config::Config;
use agtmux_api::wire::{EventReceiptStatus, ListScope, WatchItem};
use agtmux_core::binding::EventOrigin;
use agtmux_core::evidence::Source;
use agtmux_core::fleet::{DetectedAgent, OutageCode, PaneProcess, PaneRow};
use agtmux_core::ids::*;
use agtmux_core::state::State;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::clock::TestTime;
use crate::replay::{ReplayOutcome, replay_database};
use crate::view::FleetView;

const GENERATION: Generation = Generation { pid: 1, start_time: 1 };

struct TestEngine {
    dir: TempDir,
    event_log: Arc<EventLog>,
    handle: Option<EngineHandle>,
    task: tokio::task::JoinHandle<()>,
    time: TestTime,
    clock: Clock,
}

fn server(name: &str) -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new(name) }
}

impl TestEngine {
    fn start(dir: TempDir) -> Self {
        Self::start_with(dir, Config::default().state)
    }

    fn start_with(dir: TempDir, settings: config::StateConfig) -> Self {
        Self::start_at(dir, settings, TestTime::default())
    }

    fn start_at(dir: TempDir, settings: config::StateConfig, time: TestTime) -> Self {
        Self::start_with_all(dir, settings, time, Arc::default())
    }

    fn start_observed(dir: TempDir, settings: config::StateConfig, hints: Arc<RecheckHints>) -> Self {
        Self::start_with_all(dir, settings, TestTime::default(), hints)
    }

    fn start_with_all(dir: TempDir, settings: config::StateConfig, time: TestTime, hints: Arc<RecheckHints>) -> Self {
        let (store, contents) = Store::open(&dir.path().join("state.db")).expect("opened");
        let clock = time.clock();
        let view = FleetView::from_fleet(&contents.fleet, clock.now());
        let event_log = Arc::new(EventLog::new(view, contents.seq));
        let (engine, handle) =
            Engine::new(clock.clone(), settings, contents, Arc::new(store), Arc::default(), event_log.clone(), hints)
                .expect("an engine");
        Self { dir, event_log, handle: Some(handle), task: tokio::spawn(engine.run()), time, clock }
    }

    fn new() -> Self {
        Self::start(tempfile::tempdir().expect("a directory"))
    }

    fn handle(&self) -> &EngineHandle {
        self.handle.as_ref().expect("running")
    }

    async fn stop(mut self) -> TempDir {
        self.handle = None;
        (&mut self.task).await.expect("the engine stops");
        self.dir
    }

    async fn restart(self) -> Self {
        let time = self.time.clone();
        let engine = Self::start_at(self.stop().await, Config::default().state, time);
        engine.handle().flush().await;
        engine
    }

    fn database(&self) -> std::path::PathBuf {
        self.dir.path().join("state.db")
    }

    /// The status of the event with this key, and the reason if it was dropped.
    fn event_status(&self, key: &str) -> (String, Option<String>) {
        let connection = rusqlite::Connection::open(self.database()).expect("opened");
        let sql = "SELECT status, drop_reason FROM events WHERE dedupe_key = ?1";
        connection.query_row(sql, [key], |row| Ok((row.get(0)?, row.get(1)?))).expect("the event is stored")
    }

    async fn set_pane(&self, name: &str, pane_pid: u32, agent_pid: Option<u32>) {
        self.set_pane_with(name, GENERATION, pane_pid, agent_pid.map(|pid| ProcessRef { pid, start: 7 })).await;
    }

    async fn set_pane_with(&self, name: &str, generation: Generation, pane_pid: u32, agent: Option<ProcessRef>) {
        let row = PaneRow {
            session: SessionId(0),
            session_name: "s".into(),
            window: WindowId(0),
            window_index: 0,
            window_name: "w".into(),
            pane: PaneId(0),
            pane_index: 0,
            pid: pane_pid,
            tty: String::new(),
            dead: None,
            title: String::new(),
        };
        let listed = TopologyUpdate::Listed { server: server(name), generation, rows: vec![row] };
        self.handle().apply_topology(listed).await;
        let agent = agent.map(|process| DetectedAgent::new(AgentType::new("claude"), process));
        let panes = vec![PaneProcess { pane: PaneId(0), pane_pid, foreground: None, agent }];
        self.handle().apply_topology(TopologyUpdate::Processes { server: server(name), generation, panes }).await;
        self.handle().flush().await;
    }

    fn agents(&self) -> Vec<(String, State)> {
        let log = self.event_log.read();
        let panes = log.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) => Some((pane.runtime_id.clone()?, pane.state?)),
            _ => None,
        });
        panes.collect()
    }

    fn only_agent(&self) -> (String, State) {
        let agents = self.agents();
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.into_iter().next().expect("one agent")
    }

    async fn send(&self, event: IncomingEvent) -> Result<EventReceipt, ApiError> {
        self.handle().ingest_event(event).await
    }
}

fn origin() -> EventOrigin {
    EventOrigin {
        target: TargetName::local(),
        server: None,
        pane: Some(PaneId(0)),
        agent_type: None,
        pids: Vec::new(),
        start: None,
        starts: BTreeMap::new(),
        session: None,
        outer_pids: Vec::new(),
        cwd: None,
    }
}

fn event(event_type: &str, key: &str) -> IncomingEvent {
    IncomingEvent {
        event_id: uuid::Uuid::now_v7().simple().to_string(),
        address: EventAddress::Origin(origin()),
        source: Source::Hook,
        event_type: event_type.into(),
        source_event_id: None,
        dedupe_key: key.into(),
        source_seq: None,
        event_time: None,
        content_hash: event_type.into(),
        payload: Value::Null,
        body: None,
        was_spooled: false,
        sender: None,
    }
}

fn run<T>(test: impl AsyncFnOnce() -> T) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test())
}

/// Waits until the condition holds. Sleeps between two checks, so that the engine can run on the same thread.
async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), poll).await.unwrap_or_else(|_| panic!("waited for {what}"));
}

#[track_caller]
fn assert_replays(database: &std::path::Path) {
    let outcome = replay_database(database).expect("replayed");
    assert!(matches!(outcome, ReplayOutcome::Same { .. }), "{outcome:?}");
}

#[test]
fn a_repeated_event_changes_the_state_once() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        let first = engine.send(event("running", "k1")).await.expect("accepted");
        assert_eq!(first.status, EventReceiptStatus::Bound);
        assert_eq!(engine.only_agent().1, State::Running);
        engine.send(event("waiting_approval", "k2")).await.expect("accepted");
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
        let again = engine.send(event("running", "k1")).await.expect("accepted");
        assert_eq!((again.status, again.event_id), (EventReceiptStatus::Duplicate, first.event_id));
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
        let conflict = engine.send(event("idle", "k1")).await.expect_err("other content");
        assert_eq!(conflict.code, agtmux_api::error::ErrorCode::IdempotencyConflict);
    });
}

#[test]
fn an_event_waits_for_its_runtime() {
    run(async || {
        let engine = TestEngine::new();
        let early = engine.send(IncomingEvent {
            address: EventAddress::Origin(EventOrigin { pids: vec![50], ..origin() }),
            ..event("running", "k")
        });
        assert_eq!(early.await.expect("accepted").status, EventReceiptStatus::PendingBind);
        engine.set_pane("default", 10, Some(51)).await;
        assert_eq!(engine.only_agent().1, State::Unknown, "the event is about another process");
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Running);
    });
}

#[test]
fn an_event_for_a_pane_id_on_two_servers_is_not_bound() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("a", 10, Some(50)).await;
        engine.set_pane("b", 20, Some(60)).await;
        assert_eq!(engine.send(event("running", "k")).await.expect("accepted").status, EventReceiptStatus::PendingBind);
        assert!(engine.agents().iter().all(|(_, state)| *state == State::Unknown));
        let to_b = EventOrigin { server: Some(ServerName::new("b")), ..origin() };
        engine
            .send(IncomingEvent { address: EventAddress::Origin(to_b), ..event("running", "k2") })
            .await
            .expect("accepted");
        let running: Vec<_> = engine.agents().into_iter().filter(|(_, state)| *state == State::Running).collect();
        assert_eq!(running.len(), 1);
    });
}

#[test]
fn restarts_keep_the_states_and_a_replay_finds_no_difference() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        for n in 0..20 {
            let state = ["running", "waiting_input", "completed", "error"][n % 4];
            engine.send(event(state, &format!("k{n}"))).await.expect("accepted");
        }
        let before = engine.only_agent();
        assert_eq!(before.1, State::Error);
        let engine = engine.restart().await;
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent(), before);
        let again = engine.send(event("running", "k0")).await.expect("accepted");
        assert_eq!(again.status, EventReceiptStatus::Duplicate, "keys survive a restart");
        engine.send(event("running", "k99")).await.expect("accepted");
        let dir = engine.stop().await;
        let outcome = replay_database(&dir.path().join("state.db")).expect("replayed");
        assert!(matches!(outcome, ReplayOutcome::Same { inputs, .. } if inputs > 20), "{outcome:?}");
    });
}

#[test]
fn an_outage_sets_unknown_and_the_state_returns_afterwards() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(event("running", "k")).await.expect("accepted");
        let outage = TopologyUpdate::ServerOutage {
            server: server("default"),
            generation: GENERATION,
            code: OutageCode::ServerNotResponding,
            message: "stopped".into(),
        };
        engine.handle().apply_topology(outage).await;
        engine.handle().flush().await;
        assert_eq!(engine.only_agent().1, State::Unknown);
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Running);
    });
}

#[test]
fn an_explanation_lists_every_observation() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(event("running", "k")).await.expect("accepted");
        let explanation = engine.handle().explain("%0".parse().expect("a reference")).await.expect("accepted");
        assert_eq!((explanation.state, explanation.candidates.len()), (State::Running, 2));
        assert!(explanation.candidates.iter().all(|c| c.fresh && c.rule == "generic"));
        let error = engine.handle().explain("%9".parse().expect("a reference")).await.expect_err("not found");
        assert_eq!(error.code, agtmux_api::error::ErrorCode::RefNotFound);
    });
}
