//! Tests of native events and screens through the adapters.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef};
use agtmux_core::fleet::ForegroundProcess;
use serde_json::json;

use super::*;
use crate::observe::ScreenEvidence;

const AGENT: ProcessRef = ProcessRef { pid: 50, start: 7 };

fn hook(key: &str, payload: &Value) -> IncomingEvent {
    let event_type = payload["hook_event_name"].as_str().expect("a hook").to_owned();
    let body = Some(json!({ "payload": payload }).to_string());
    IncomingEvent { event_type, payload: payload.clone(), body, ..event("", key) }
}

fn screen_observation(source: Source, assertion: Assertion, as_of: Timestamp, dialog: Option<Dialog>) -> Observation {
    Observation {
        excerpt: "a line".into(),
        dialog: dialog.map(Box::new),
        ..Observation::new(source, assertion, as_of, RuleRef::new("test", 1))
    }
}

impl TestEngine {
    pub(super) async fn show_screen(
        &self,
        process: ProcessRef,
        observations: Vec<Observation>,
        silent_sources: Vec<Source>,
    ) {
        self.show_screen_in(PaneId(0), process, observations, silent_sources).await;
    }

    async fn show_screen_in(
        &self,
        pane: PaneId,
        process: ProcessRef,
        observations: Vec<Observation>,
        silent_sources: Vec<Source>,
    ) {
        let captured_at = Timestamp::now();
        let evidence = ScreenEvidence {
            server: server("a"),
            generation: GENERATION,
            pane,
            process,
            captured_at,
            observations,
            silent_sources,
        };
        self.handle().apply_screen(evidence).await;
        self.handle().flush().await;
    }

    pub(super) async fn post_hook(&self, key: &str, payload: Value) -> State {
        self.send(hook(key, &payload)).await.expect("accepted");
        self.only_agent().1
    }

    pub(super) fn dialog(&self) -> Option<Dialog> {
        let log = self.event_log.read();
        let mut panes = log.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) => Some(pane.dialog.clone()),
            _ => None,
        });
        panes.next().flatten()
    }
}

#[tokio::test]
async fn a_hook_event_sets_the_state_by_the_rules_of_the_manifest() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"});
    assert_eq!(engine.post_hook("1", prompt).await, State::Running);
    let request = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "x"}});
    assert_eq!(engine.post_hook("2", request.clone()).await, State::WaitingApproval);
    let other = json!({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}});
    assert_eq!(engine.post_hook("3", other).await, State::WaitingApproval, "the end of another tool");
    let mut done = request;
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(engine.post_hook("4", done).await, State::Running);
}

#[tokio::test]
async fn adapter_memory_survives_a_restart() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    let request = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "x"}});
    engine.post_hook("1", request.clone()).await;
    let engine = engine.restart().await;
    engine.set_pane("a", 10, Some(50)).await;
    let other = json!({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}});
    assert_eq!(engine.post_hook("2", other).await, State::WaitingApproval);
    let mut done = request;
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(engine.post_hook("3", done).await, State::Running);
}

#[tokio::test]
async fn an_agent_that_reports_its_session_gets_an_agent_id() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    let agent_id = |engine: &TestEngine| {
        let log = engine.event_log.read();
        let ids = log.view.items(ListScope::Panes).map(|item| match item {
            WatchItem::Pane(pane) => pane.agent_id.clone(),
            _ => None,
        });
        ids.into_iter().flatten().next()
    };
    assert_eq!(agent_id(&engine), None);
    engine.post_hook("1", json!({"hook_event_name": "SessionStart", "session_id": "s-1", "source": "startup"})).await;
    let first = agent_id(&engine).expect("an agent id");
    let engine = engine.restart().await;
    assert_eq!(agent_id(&engine), Some(first));
}

#[tokio::test]
async fn a_screen_sets_the_state_and_the_dialog() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    let dialog = Dialog::new(DialogKind::Approval, "Run it?".into(), None, Vec::new());
    let asks = screen_observation(
        Source::Screen,
        Assertion::DialogOpen(DialogKind::Approval),
        Timestamp::now(),
        Some(dialog.clone()),
    );
    engine.show_screen(ProcessRef { pid: 51, start: 7 }, vec![asks], vec![]).await;
    assert_eq!(engine.only_agent().1, State::Unknown, "the screen belongs to another process");
    let asks = screen_observation(
        Source::Screen,
        Assertion::DialogOpen(DialogKind::Approval),
        Timestamp::now(),
        Some(dialog.clone()),
    );
    engine.show_screen(AGENT, vec![asks], vec![]).await;
    assert_eq!((engine.only_agent().1, engine.dialog()), (State::WaitingApproval, Some(dialog)));
    let now = Timestamp::now();
    let idle = [Assertion::Idle, Assertion::NoDialog]
        .map(|assertion| screen_observation(Source::Screen, assertion, now, None));
    engine.show_screen(AGENT, idle.into(), vec![]).await;
    assert_eq!((engine.only_agent().1, engine.dialog()), (State::Idle, None));
}

#[tokio::test]
async fn an_idle_screen_inferred_from_absence_does_not_end_a_turn_reported_by_a_hook() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    engine.post_hook("1", json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"})).await;
    let idle_screen = |inferred| {
        vec![Observation {
            inferred_from_absence: inferred,
            ..screen_observation(Source::Screen, Assertion::Idle, Timestamp::now(), None)
        }]
    };
    engine.show_screen(AGENT, idle_screen(true), vec![]).await;
    assert_eq!(engine.only_agent().1, State::Running);
    let engine = engine.restart().await;
    engine.set_pane("a", 10, Some(50)).await;
    assert_eq!(engine.only_agent().1, State::Running, "the flag is stored");
    engine.show_screen(AGENT, idle_screen(false), vec![]).await;
    assert_eq!(engine.only_agent().1, State::Idle);
    engine.show_screen(AGENT, idle_screen(true), vec![]).await;
    assert_eq!(engine.only_agent().1, State::Idle, "the turn has ended");
}

#[tokio::test]
async fn an_unchanged_screen_is_not_logged_again() {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(50)).await;
    let count = |engine: &TestEngine| -> u32 {
        let connection = rusqlite::Connection::open(engine.database()).expect("opened");
        connection.query_row("SELECT count(*) FROM engine_inputs", [], |row| row.get(0)).expect("counted")
    };
    let show_idle = async |engine: &TestEngine| {
        let now = Timestamp::now();
        let idle = [Assertion::Idle, Assertion::NoDialog]
            .map(|assertion| screen_observation(Source::Screen, assertion, now, None));
        engine.show_screen(AGENT, idle.into(), vec![Source::Title]).await;
    };
    show_idle(&engine).await;
    let once = count(&engine);
    show_idle(&engine).await;
    show_idle(&engine).await;
    assert_eq!(count(&engine), once);
}

#[tokio::test]
async fn pending_events_are_bound_when_several_agents_begin_at_once() {
    let engine = TestEngine::new();
    let mut late = event("running", "1");
    late.address = EventAddress::Origin(EventOrigin { pane: Some(PaneId(1)), ..origin() });
    assert_eq!(engine.send(late).await.expect("accepted").status, EventReceiptStatus::PendingBind);
    start_two_agents(&engine, "claude", ["/one", "/two"]).await;
    let mut states: Vec<State> = engine.agents().into_iter().map(|(_, state)| state).collect();
    states.sort();
    assert_eq!(states, [State::Running, State::Unknown]);
}

/// Starts two agents of this type in these directories.
async fn start_two_agents(engine: &TestEngine, kind: &str, dirs: [&str; 2]) {
    let row = |pane: u32| PaneRow {
        session: SessionId(0),
        session_name: "s".into(),
        window: WindowId(0),
        window_index: 0,
        window_name: "w".into(),
        pane: PaneId(pane),
        pane_index: pane,
        pid: 10 + pane,
        tty: String::new(),
        dead: None,
        title: String::new(),
    };
    let process_row = |pane: u32, dir: &str| PaneProcess {
        pane: PaneId(pane),
        pane_pid: 10 + pane,
        foreground: Some(ForegroundProcess { command: kind.into(), cwd: Some(dir.into()) }),
        agent: Some(DetectedAgent {
            agent_type: AgentType::new(kind),
            process: ProcessRef { pid: 50 + pane, start: 7 },
            suspended: false,
            launch: Default::default(),
        }),
    };
    let (server, generation) = (server("a"), GENERATION);
    let listed = TopologyUpdate::Listed { server: server.clone(), generation, rows: vec![row(0), row(1)] };
    engine.handle().apply_topology(listed).await;
    let panes = vec![process_row(0, dirs[0]), process_row(1, dirs[1])];
    engine.handle().apply_topology(TopologyUpdate::Processes { server, generation, panes }).await;
    engine.handle().flush().await;
}

/// An event of a process that serves several agents. The event names the pane of the first agent.
fn shared_process_event(key: &str, kind: &str, session: &str, dir: &str) -> IncomingEvent {
    let origin = EventOrigin {
        agent_type: Some(AgentType::new(kind)),
        pids: vec![999],
        session: Some(session.into()),
        cwd: Some(dir.into()),
        ..origin()
    };
    let payload = json!({"hook_event_name": "UserPromptSubmit", "session_id": session});
    IncomingEvent { address: EventAddress::Origin(origin), ..hook(key, &payload) }
}

/// Reports an assertion as if it came from the title of the agent in this pane.
async fn set_title(engine: &TestEngine, pane: u32, assertion: Assertion) {
    let process = ProcessRef { pid: 50 + pane, start: 7 };
    engine
        .show_screen_in(
            PaneId(pane),
            process,
            vec![screen_observation(Source::Title, assertion, Timestamp::now(), None)],
            vec![],
        )
        .await;
}

fn running(engine: &TestEngine) -> usize {
    engine.agents().iter().filter(|(_, state)| *state == State::Running).count()
}

/// The runtime to which the event with this key was bound.
fn bound_runtime(engine: &TestEngine, key: &str) -> Option<String> {
    let connection = rusqlite::Connection::open(engine.database()).expect("opened");
    let sql = "SELECT runtime_id FROM events WHERE dedupe_key = ?1";
    connection.query_row(sql, [key], |row| row.get(0)).expect("the event is stored")
}

#[tokio::test]
async fn events_of_a_shared_process_are_bound_by_session_or_by_the_turn_that_begins() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "codex", ["/one", "/two"]).await;
    for pane in [0, 1] {
        set_title(&engine, pane, Assertion::Idle).await;
    }
    let first = engine.send(shared_process_event("1", "codex", "s2", "/two")).await.expect("accepted");
    assert_eq!(first.status, EventReceiptStatus::PendingBind, "an agent outside tmux may work in that directory");
    set_title(&engine, 0, Assertion::Running).await;
    assert_eq!(bound_runtime(&engine, "1"), None, "the first agent works in another directory");
    set_title(&engine, 1, Assertion::Running).await;
    let second = bound_runtime(&engine, "1").expect("bound to the agent that begins a turn");
    let moved = engine.send(shared_process_event("2", "codex", "s2", "/one")).await.expect("accepted");
    assert_eq!(moved.runtime_id.as_ref(), Some(&second), "a session stays bound to its runtime in any directory");
    let other = engine.send(shared_process_event("3", "codex", "s1", "/one")).await.expect("accepted");
    assert!(other.runtime_id.is_some_and(|other| other != second), "the turn was seen before its event arrived");
}

#[tokio::test]
async fn events_of_a_shared_process_are_not_bound_by_directory_alone() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "codex", ["/one", "/two"]).await;
    set_title(&engine, 0, Assertion::Running).await;
    set_title(&engine, 1, Assertion::Idle).await;
    for (key, dir) in [("1", "/one"), ("2", "/two")] {
        let event = engine.send(shared_process_event(key, "codex", "foreign", dir)).await.expect("accepted");
        assert_eq!(event.status, EventReceiptStatus::PendingBind, "{dir}");
    }
    assert_eq!(running(&engine), 1, "only the agent that ran before");
}

#[tokio::test]
async fn of_two_agents_in_one_directory_the_one_that_begins_a_turn_gets_the_event() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "codex", ["/one", "/one"]).await;
    for pane in [0, 1] {
        set_title(&engine, pane, Assertion::Idle).await;
    }
    engine.send(shared_process_event("1", "codex", "s", "/one")).await.expect("accepted");
    engine.send(shared_process_event("2", "codex", "s", "/one")).await.expect("accepted");
    set_title(&engine, 1, Assertion::Running).await;
    assert!(bound_runtime(&engine, "1").is_some());
    assert_eq!(bound_runtime(&engine, "2"), bound_runtime(&engine, "1"));
    assert_eq!(running(&engine), 1);
}

#[tokio::test]
async fn two_sessions_that_begin_at_once_are_not_bound() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "codex", ["/one", "/two"]).await;
    set_title(&engine, 0, Assertion::Idle).await;
    for (key, session) in [("1", "own"), ("2", "foreign")] {
        engine.send(shared_process_event(key, "codex", session, "/one")).await.expect("accepted");
    }
    set_title(&engine, 0, Assertion::Running).await;
    assert_eq!((bound_runtime(&engine, "1"), bound_runtime(&engine, "2")), (None, None));
}

#[tokio::test]
async fn an_agent_with_its_own_process_is_not_bound_by_directory() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "claude", ["/one", "/two"]).await;
    let event = engine.send(shared_process_event("1", "claude", "s", "/two")).await.expect("accepted");
    assert_eq!(event.status, EventReceiptStatus::PendingBind);
}

/// The same event as if it came from a process outside tmux.
fn without_pane(event: IncomingEvent) -> IncomingEvent {
    match event.address {
        EventAddress::Origin(origin) => {
            IncomingEvent { address: EventAddress::Origin(EventOrigin { pane: None, ..origin }), ..event }
        }
        EventAddress::Runtime(_) => event,
    }
}

#[tokio::test]
async fn a_shared_process_outside_tmux_is_bound_by_a_known_session() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "codex", ["/one", "/two"]).await;
    let unknown_session =
        engine.send(without_pane(shared_process_event("1", "codex", "s9", "/two"))).await.expect("accepted");
    assert_eq!(
        unknown_session.status,
        EventReceiptStatus::PendingBind,
        "it may be another agent outside tmux in that directory"
    );
    set_title(&engine, 0, Assertion::Idle).await;
    engine.send(shared_process_event("2", "codex", "s2", "/one")).await.expect("accepted");
    set_title(&engine, 0, Assertion::Running).await;
    let again = engine.send(without_pane(shared_process_event("3", "codex", "s2", "/two"))).await.expect("accepted");
    assert!(again.runtime_id.is_some());
    assert_eq!(again.runtime_id, bound_runtime(&engine, "2"));
}

#[tokio::test]
async fn an_agent_with_its_own_process_is_bound_by_process_or_session() {
    let engine = TestEngine::new();
    start_two_agents(&engine, "claude", ["/one", "/two"]).await;
    let from_pids = |key: &str, pids: &[u32]| {
        let event = without_pane(shared_process_event(key, "claude", "s", "/one"));
        let EventAddress::Origin(origin) = event.address else { unreachable!("it has an origin") };
        IncomingEvent { address: EventAddress::Origin(EventOrigin { pids: pids.to_vec(), ..origin }), ..event }
    };
    let early = engine.send(from_pids("1", &[])).await.expect("accepted");
    assert_eq!(early.status, EventReceiptStatus::PendingBind, "the session is unknown, and a directory is no proof");
    let first = engine.send(from_pids("2", &[900, 51])).await.expect("accepted");
    assert_eq!(first.status, EventReceiptStatus::Bound);
    let by_session = engine.send(from_pids("3", &[])).await.expect("accepted");
    assert_eq!(by_session.runtime_id, first.runtime_id);
    let another = engine.send(from_pids("4", &[900])).await.expect("accepted");
    assert_eq!(another.status, EventReceiptStatus::PendingBind, "the same session, opened a second time");
}
