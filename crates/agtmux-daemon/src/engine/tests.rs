//! The engine with a real store and no tmux: observations and events in, lists and receipts out.

mod adapters;
mod collect;
mod ended_runtimes;
mod purge;
mod remote_limits;
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
use tempfile::TempDir;

use super::*;
use crate::replay::{ReplayOutcome, replay_database};
use crate::view::FleetView;

const GENERATION: Generation = Generation { pid: 1, start_time: 1 };

struct TestEngine {
    dir: TempDir,
    shared: Arc<EventLog>,
    handle: Option<EngineHandle>,
    task: tokio::task::JoinHandle<()>,
}

fn server(name: &str) -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new(name) }
}

impl TestEngine {
    fn start(dir: TempDir) -> Self {
        Self::start_with(dir, Config::default().state)
    }

    fn start_with(dir: TempDir, settings: config::StateConfig) -> Self {
        let (store, remembered) = Store::open(&dir.path().join("state.db")).expect("opened");
        let shared = Arc::new(EventLog::new(FleetView::from_fleet(&remembered.fleet), remembered.seq));
        let (engine, handle) = Engine::new(
            Clock::start(),
            settings,
            remembered,
            Arc::new(store),
            Arc::default(),
            shared.clone(),
            Arc::default(),
        )
        .expect("an engine");
        Self { dir, shared, handle: Some(handle), task: tokio::spawn(engine.run()) }
    }

    fn new() -> Self {
        Self::start(tempfile::tempdir().expect("a directory"))
    }

    fn handle(&self) -> &EngineHandle {
        self.handle.as_ref().expect("running")
    }

    async fn stop(mut self) -> TempDir {
        self.handle = None;
        (&mut self.task).await.expect("ends well");
        self.dir
    }

    async fn restart(self) -> Self {
        let world = Self::start(self.stop().await);
        world.handle().flush().await;
        world
    }

    fn database(&self) -> std::path::PathBuf {
        self.dir.path().join("state.db")
    }

    /// What became of the event with this key: its status, and why it was dropped.
    fn fate(&self, key: &str) -> (String, Option<String>) {
        let connection = rusqlite::Connection::open(self.database()).expect("opened");
        let sql = "SELECT status, drop_reason FROM events WHERE dedupe_key = ?1";
        connection.query_row(sql, [key], |row| Ok((row.get(0)?, row.get(1)?))).expect("the event is stored")
    }

    async fn pane(&self, name: &str, pane_pid: u32, agent_pid: Option<u32>) {
        self.pane_of(name, GENERATION, pane_pid, agent_pid.map(|pid| ProcessRef { pid, start: 7 })).await;
    }

    async fn pane_of(&self, name: &str, generation: Generation, pane_pid: u32, agent: Option<ProcessRef>) {
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
        let agent =
            agent.map(|process| DetectedAgent { agent_type: AgentType::new("claude"), process, suspended: false });
        let panes = vec![PaneProcess { pane: PaneId(0), pane_pid, foreground: None, agent }];
        self.handle().apply_topology(TopologyUpdate::Processes { server: server(name), generation, panes }).await;
        self.handle().flush().await;
    }

    fn agents(&self) -> Vec<(String, State)> {
        let inner = self.shared.read();
        let panes = inner.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) => Some((pane.runtime_id.clone()?, pane.state?)),
            _ => None,
        });
        panes.collect()
    }

    fn only(&self) -> (String, State) {
        let agents = self.agents();
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.into_iter().next().expect("one")
    }

    async fn send(&self, event: IncomingEvent) -> Result<EventReceipt, ApiError> {
        self.handle().ingest_event(event).await
    }
}

fn whereabouts() -> EventOrigin {
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
        address: EventAddress::Origin(whereabouts()),
        source: Source::Hook,
        event_type: event_type.into(),
        source_event_id: None,
        dedupe_key: key.into(),
        source_seq: None,
        event_time: None,
        content_hash: event_type.into(),
        payload: None,
        was_spooled: false,
    }
}

fn run<T>(test: impl AsyncFnOnce() -> T) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test())
}

/// The engine lives on the same thread, so nothing may wait without giving way to it.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let met = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), met).await.unwrap_or_else(|_| panic!("waited for {what}"));
}

#[track_caller]
fn assert_replays(database: &std::path::Path) {
    let replayed = replay_database(database).expect("replayed");
    assert!(matches!(replayed, ReplayOutcome::Same { .. }), "{replayed:?}");
}

#[test]
fn an_event_changes_the_state_once() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        let first = world.send(event("running", "k1")).await.expect("taken");
        assert_eq!(first.status, EventReceiptStatus::Bound);
        assert_eq!(world.only().1, State::Running);
        world.send(event("waiting_approval", "k2")).await.expect("taken");
        assert_eq!(world.only().1, State::WaitingApproval);
        let again = world.send(event("running", "k1")).await.expect("known");
        assert_eq!((again.status, again.event_id), (EventReceiptStatus::Duplicate, first.event_id));
        assert_eq!(world.only().1, State::WaitingApproval);
        let conflict = world.send(event("idle", "k1")).await.expect_err("other content");
        assert_eq!(conflict.code, agtmux_api::error::ErrorCode::IdempotencyConflict);
    });
}

#[test]
fn an_event_waits_for_the_runtime_that_it_is_about() {
    run(async || {
        let world = TestEngine::new();
        let early = world.send(IncomingEvent {
            address: EventAddress::Origin(EventOrigin { pids: vec![50], ..whereabouts() }),
            ..event("running", "k")
        });
        assert_eq!(early.await.expect("taken").status, EventReceiptStatus::PendingBind);
        world.pane("default", 10, Some(51)).await;
        assert_eq!(world.only().1, State::Unknown, "it is about another process");
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Running);
    });
}

#[test]
fn the_same_pane_on_two_servers_is_never_guessed() {
    run(async || {
        let world = TestEngine::new();
        world.pane("a", 10, Some(50)).await;
        world.pane("b", 20, Some(60)).await;
        assert_eq!(world.send(event("running", "k")).await.expect("taken").status, EventReceiptStatus::PendingBind);
        assert!(world.agents().iter().all(|(_, state)| *state == State::Unknown));
        let to_b = EventOrigin { server: Some(ServerName::new("b")), ..whereabouts() };
        world
            .send(IncomingEvent { address: EventAddress::Origin(to_b), ..event("running", "k2") })
            .await
            .expect("taken");
        let running: Vec<_> = world.agents().into_iter().filter(|(_, state)| *state == State::Running).collect();
        assert_eq!(running.len(), 1);
    });
}

#[test]
fn restarts_in_between_change_nothing_and_a_replay_finds_no_difference() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        for n in 0..20 {
            let state = ["running", "waiting_input", "completed", "error"][n % 4];
            world.send(event(state, &format!("k{n}"))).await.expect("taken");
        }
        let before = world.only();
        assert_eq!(before.1, State::Error);
        let world = world.restart().await;
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only(), before);
        let again = world.send(event("running", "k0")).await.expect("known");
        assert_eq!(again.status, EventReceiptStatus::Duplicate, "also over a restart");
        world.send(event("running", "k99")).await.expect("taken");
        let dir = world.stop().await;
        let replayed = replay_database(&dir.path().join("state.db")).expect("replayed");
        assert!(matches!(replayed, ReplayOutcome::Same { inputs, .. } if inputs > 20), "{replayed:?}");
    });
}

#[test]
fn an_outage_is_unknown_and_gives_the_state_back() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        world.send(event("running", "k")).await.expect("taken");
        let outage = TopologyUpdate::ServerOutage {
            server: server("default"),
            generation: GENERATION,
            code: OutageCode::ServerNotResponding,
            message: "stopped".into(),
        };
        world.handle().apply_topology(outage).await;
        world.handle().flush().await;
        assert_eq!(world.only().1, State::Unknown);
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Running);
    });
}

#[test]
fn an_explanation_names_every_statement() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        world.send(event("running", "k")).await.expect("taken");
        let why = world.handle().explain("%0".parse().expect("a reference")).await.expect("known");
        assert_eq!((why.state, why.candidates.len()), (State::Running, 2));
        assert!(why.candidates.iter().all(|c| c.fresh && c.rule == "generic"));
        let refused = world.handle().explain("%9".parse().expect("a reference")).await.expect_err("nobody there");
        assert_eq!(refused.code, agtmux_api::error::ErrorCode::RefNotFound);
    });
}
