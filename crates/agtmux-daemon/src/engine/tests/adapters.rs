//! What agents say and show, through their adapters.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, RuleRef, Source};
use agtmux_core::fleet::ForegroundProcess;
use serde_json::{Value, json};

use super::*;
use crate::observe::{ScreenEvidence, SourceObservation};

const AGENT: ProcessRef = ProcessRef { pid: 50, start: 7 };

fn hook(key: &str, payload: &Value) -> IncomingEvent {
    let event_type = payload["hook_event_name"].as_str().expect("a hook").to_owned();
    IncomingEvent { event_type, payload: Some(json!({ "payload": payload }).to_string()), ..event("", key) }
}

fn sight(source: Source, stand: Assertion, as_of: Timestamp, dialog: Option<Dialog>) -> SourceObservation {
    let rule = RuleRef { name: "test".into(), version: 1 };
    SourceObservation {
        source,
        assertion: stand,
        conclusive: true,
        inferred_from_absence: false,
        no_turn_visible: false,
        settled: true,
        as_of,
        rule,
        excerpt: "a line".into(),
        dialog,
    }
}

impl TestEngine {
    async fn sees(&self, process: ProcessRef, sights: Vec<SourceObservation>, silent: Vec<Source>) {
        self.sees_in(PaneId(0), process, sights, silent).await;
    }

    async fn sees_in(&self, pane: PaneId, process: ProcessRef, sights: Vec<SourceObservation>, silent: Vec<Source>) {
        let began = Timestamp::now();
        let home = (server("a"), GENERATION, pane);
        let seen = ScreenEvidence {
            server: home.0,
            generation: home.1,
            pane: home.2,
            process,
            captured_at: began,
            observations: sights,
            silent_sources: silent,
        };
        self.handle().apply_screen(seen).await;
        self.handle().flush().await;
    }

    async fn hears(&self, key: &str, payload: Value) -> State {
        self.send(hook(key, &payload)).await.expect("taken");
        self.only().1
    }

    fn dialog(&self) -> Option<Dialog> {
        let inner = self.shared.read();
        let mut panes = inner.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) => Some(pane.dialog.clone()),
            _ => None,
        });
        panes.next().flatten()
    }
}

#[tokio::test]
async fn what_a_hook_says_becomes_a_state_by_the_rules_of_its_agent() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"});
    assert_eq!(world.hears("1", prompt).await, State::Running);
    let request = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "x"}});
    assert_eq!(world.hears("2", request.clone()).await, State::WaitingApproval);
    let other = json!({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}});
    assert_eq!(world.hears("3", other).await, State::WaitingApproval, "another tool's end");
    let mut done = request;
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(world.hears("4", done).await, State::Running);
}

#[tokio::test]
async fn what_is_remembered_survives_a_restart() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    let request = json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "x"}});
    world.hears("1", request.clone()).await;
    let world = world.restart().await;
    world.pane("a", 10, Some(50)).await;
    let other = json!({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}});
    assert_eq!(world.hears("2", other).await, State::WaitingApproval);
    let mut done = request;
    done["hook_event_name"] = json!("PostToolUse");
    assert_eq!(world.hears("3", done).await, State::Running);
}

#[tokio::test]
async fn an_agent_that_tells_its_session_has_a_name_of_its_own() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    let agent_id = |world: &TestEngine| {
        let inner = world.shared.read();
        let ids = inner.view.items(ListScope::Panes).map(|item| match item {
            WatchItem::Pane(pane) => pane.agent_id.clone(),
            _ => None,
        });
        ids.into_iter().flatten().next()
    };
    assert_eq!(agent_id(&world), None);
    world.hears("1", json!({"hook_event_name": "SessionStart", "session_id": "s-1", "source": "startup"})).await;
    let first = agent_id(&world).expect("named");
    let world = world.restart().await;
    assert_eq!(agent_id(&world), Some(first));
}

#[tokio::test]
async fn what_a_screen_shows_becomes_a_state_with_its_question() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    let dialog = Dialog::new(DialogKind::Approval, "Run it?".into(), None, Vec::new());
    let asks =
        sight(Source::Screen, Assertion::DialogOpen(DialogKind::Approval), Timestamp::now(), Some(dialog.clone()));
    world.sees(ProcessRef { pid: 51, start: 7 }, vec![asks], vec![]).await;
    assert_eq!(world.only().1, State::Unknown, "that was somebody else's screen");
    let asks =
        sight(Source::Screen, Assertion::DialogOpen(DialogKind::Approval), Timestamp::now(), Some(dialog.clone()));
    world.sees(AGENT, vec![asks], vec![]).await;
    assert_eq!((world.only().1, world.dialog()), (State::WaitingApproval, Some(dialog)));
    let now = Timestamp::now();
    let idle = [Assertion::Idle, Assertion::NoDialog].map(|stand| sight(Source::Screen, stand, now, None));
    world.sees(AGENT, idle.into(), vec![]).await;
    assert_eq!((world.only().1, world.dialog()), (State::Idle, None));
}

#[tokio::test]
async fn a_screen_that_only_shows_no_turn_ends_none_that_a_hook_tells_of() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    world.hears("1", json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"})).await;
    let rests = |yields| {
        vec![SourceObservation {
            inferred_from_absence: yields,
            ..sight(Source::Screen, Assertion::Idle, Timestamp::now(), None)
        }]
    };
    world.sees(AGENT, rests(true), vec![]).await;
    assert_eq!(world.only().1, State::Running);
    let world = world.restart().await;
    world.pane("a", 10, Some(50)).await;
    assert_eq!(world.only().1, State::Running, "it is stored with its weight");
    world.sees(AGENT, rests(false), vec![]).await;
    assert_eq!(world.only().1, State::Idle);
    world.sees(AGENT, rests(true), vec![]).await;
    assert_eq!(world.only().1, State::Idle, "it has ended, and that is no longer shown");
}

#[tokio::test]
async fn a_screen_that_shows_the_same_again_is_not_written_down_again() {
    let world = TestEngine::new();
    world.pane("a", 10, Some(50)).await;
    let count = |world: &TestEngine| -> u32 {
        let connection = rusqlite::Connection::open(world.database()).expect("opened");
        connection.query_row("SELECT count(*) FROM engine_inputs", [], |row| row.get(0)).expect("counted")
    };
    let look = async |world: &TestEngine| {
        let now = Timestamp::now();
        let idle = [Assertion::Idle, Assertion::NoDialog].map(|stand| sight(Source::Screen, stand, now, None));
        world.sees(AGENT, idle.into(), vec![Source::Title]).await;
    };
    look(&world).await;
    let once = count(&world);
    look(&world).await;
    look(&world).await;
    assert_eq!(count(&world), once);
}

#[tokio::test]
async fn events_that_waited_reach_every_agent_that_begins_at_once() {
    let world = TestEngine::new();
    let mut late = event("running", "1");
    late.address = EventAddress::Origin(EventOrigin { pane: Some(PaneId(1)), ..whereabouts() });
    assert_eq!(world.send(late).await.expect("taken").status, EventReceiptStatus::PendingBind);
    two(&world, "claude", ["/one", "/two"]).await;
    let mut states: Vec<State> = world.agents().into_iter().map(|(_, state)| state).collect();
    states.sort();
    assert_eq!(states, [State::Running, State::Unknown]);
}

/// Two agents of this kind in these directories.
async fn two(world: &TestEngine, kind: &str, dirs: [&str; 2]) {
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
    let sighting = |pane: u32, dir: &str| PaneProcess {
        pane: PaneId(pane),
        pane_pid: 10 + pane,
        foreground: Some(ForegroundProcess { command: kind.into(), cwd: Some(dir.into()) }),
        agent: Some(DetectedAgent {
            agent_type: AgentType::new(kind),
            process: ProcessRef { pid: 50 + pane, start: 7 },
            suspended: false,
        }),
    };
    let (server, generation) = (server("a"), GENERATION);
    let listed = TopologyUpdate::Listed { server: server.clone(), generation, rows: vec![row(0), row(1)] };
    world.handle().apply_topology(listed).await;
    let panes = vec![sighting(0, dirs[0]), sighting(1, dirs[1])];
    world.handle().apply_topology(TopologyUpdate::Processes { server, generation, panes }).await;
    world.handle().flush().await;
}

/// An event of a process that serves several agents, from where the first of them is.
fn from_elsewhere(key: &str, kind: &str, session: &str, dir: &str) -> IncomingEvent {
    let from = EventOrigin {
        agent_type: Some(AgentType::new(kind)),
        pids: vec![999],
        session: Some(session.into()),
        cwd: Some(dir.into()),
        ..whereabouts()
    };
    let payload = json!({"hook_event_name": "UserPromptSubmit", "session_id": session});
    IncomingEvent { address: EventAddress::Origin(from), ..hook(key, &payload) }
}

/// What the title of one of the two tells.
async fn shows(world: &TestEngine, pane: u32, stand: Assertion) {
    let process = ProcessRef { pid: 50 + pane, start: 7 };
    world.sees_in(PaneId(pane), process, vec![sight(Source::Title, stand, Timestamp::now(), None)], vec![]).await;
}

fn running(world: &TestEngine) -> usize {
    world.agents().iter().filter(|(_, state)| *state == State::Running).count()
}

/// The runtime in which this event ended up.
fn home_of(world: &TestEngine, key: &str) -> Option<String> {
    let connection = rusqlite::Connection::open(world.database()).expect("opened");
    let sql = "SELECT runtime_id FROM events WHERE dedupe_key = ?1";
    connection.query_row(sql, [key], |row| row.get(0)).expect("the event is stored")
}

#[tokio::test]
async fn a_process_that_serves_several_agents_is_bound_by_session_or_by_the_turn_that_begins() {
    let world = TestEngine::new();
    two(&world, "codex", ["/one", "/two"]).await;
    for pane in [0, 1] {
        shows(&world, pane, Assertion::Idle).await;
    }
    let first = world.send(from_elsewhere("1", "codex", "s2", "/two")).await.expect("taken");
    assert_eq!(first.status, EventReceiptStatus::PendingBind, "an agent outside of tmux may work in that directory");
    shows(&world, 0, Assertion::Running).await;
    assert_eq!(home_of(&world, "1"), None, "that one works elsewhere");
    shows(&world, 1, Assertion::Running).await;
    let second = home_of(&world, "1").expect("it is the one that begins to work");
    let moved = world.send(from_elsewhere("2", "codex", "s2", "/one")).await.expect("taken");
    assert_eq!(moved.runtime_id.as_ref(), Some(&second), "a session stays where it is, whatever its directory");
    let other = world.send(from_elsewhere("3", "codex", "s1", "/one")).await.expect("taken");
    assert!(other.runtime_id.is_some_and(|other| other != second), "its turn was seen before it was told of");
}

#[tokio::test]
async fn a_directory_is_no_proof() {
    let world = TestEngine::new();
    two(&world, "codex", ["/one", "/two"]).await;
    shows(&world, 0, Assertion::Running).await;
    shows(&world, 1, Assertion::Idle).await;
    for (key, dir) in [("1", "/one"), ("2", "/two")] {
        let event = world.send(from_elsewhere(key, "codex", "foreign", dir)).await.expect("taken");
        assert_eq!(event.status, EventReceiptStatus::PendingBind, "{dir}");
    }
    assert_eq!(running(&world), 1, "the one that worked before");
}

#[tokio::test]
async fn of_two_agents_in_one_directory_the_one_that_begins_is_meant() {
    let world = TestEngine::new();
    two(&world, "codex", ["/one", "/one"]).await;
    for pane in [0, 1] {
        shows(&world, pane, Assertion::Idle).await;
    }
    world.send(from_elsewhere("1", "codex", "s", "/one")).await.expect("taken");
    world.send(from_elsewhere("2", "codex", "s", "/one")).await.expect("taken");
    shows(&world, 1, Assertion::Running).await;
    assert!(home_of(&world, "1").is_some());
    assert_eq!(home_of(&world, "2"), home_of(&world, "1"));
    assert_eq!(running(&world), 1);
}

#[tokio::test]
async fn two_sessions_that_begin_at_once_are_not_guessed() {
    let world = TestEngine::new();
    two(&world, "codex", ["/one", "/two"]).await;
    shows(&world, 0, Assertion::Idle).await;
    for (key, session) in [("1", "own"), ("2", "foreign")] {
        world.send(from_elsewhere(key, "codex", session, "/one")).await.expect("taken");
    }
    shows(&world, 0, Assertion::Running).await;
    assert_eq!((home_of(&world, "1"), home_of(&world, "2")), (None, None));
}

#[tokio::test]
async fn an_agent_that_speaks_for_itself_is_bound_by_its_process_only() {
    let world = TestEngine::new();
    two(&world, "claude", ["/one", "/two"]).await;
    let event = world.send(from_elsewhere("1", "claude", "s", "/two")).await.expect("taken");
    assert_eq!(event.status, EventReceiptStatus::PendingBind);
}

/// As from a process that was started outside of tmux.
fn without_a_pane(event: IncomingEvent) -> IncomingEvent {
    match event.address {
        EventAddress::Origin(from) => {
            IncomingEvent { address: EventAddress::Origin(EventOrigin { pane: None, ..from }), ..event }
        }
        EventAddress::Runtime(_) => event,
    }
}

#[tokio::test]
async fn a_shared_process_outside_of_tmux_is_bound_by_a_session_that_is_known() {
    let world = TestEngine::new();
    two(&world, "codex", ["/one", "/two"]).await;
    let stranger = world.send(without_a_pane(from_elsewhere("1", "codex", "s9", "/two"))).await.expect("taken");
    assert_eq!(
        stranger.status,
        EventReceiptStatus::PendingBind,
        "it may be another one outside of tmux in that directory"
    );
    shows(&world, 0, Assertion::Idle).await;
    world.send(from_elsewhere("2", "codex", "s2", "/one")).await.expect("taken");
    shows(&world, 0, Assertion::Running).await;
    let again = world.send(without_a_pane(from_elsewhere("3", "codex", "s2", "/two"))).await.expect("taken");
    assert!(again.runtime_id.is_some());
    assert_eq!(again.runtime_id, home_of(&world, "2"));
}

#[tokio::test]
async fn an_agent_that_speaks_for_itself_is_found_by_its_process_or_by_its_session_alone() {
    let world = TestEngine::new();
    two(&world, "claude", ["/one", "/two"]).await;
    let said = |key: &str, pids: &[u32]| {
        let event = without_a_pane(from_elsewhere(key, "claude", "s", "/one"));
        let EventAddress::Origin(from) = event.address else { unreachable!("it has whereabouts") };
        IncomingEvent { address: EventAddress::Origin(EventOrigin { pids: pids.to_vec(), ..from }), ..event }
    };
    let early = world.send(said("1", &[])).await.expect("taken");
    assert_eq!(
        early.status,
        EventReceiptStatus::PendingBind,
        "nobody has told that session, and a directory is no proof"
    );
    let first = world.send(said("2", &[900, 51])).await.expect("taken");
    assert_eq!(first.status, EventReceiptStatus::Bound);
    let by_session = world.send(said("3", &[])).await.expect("taken");
    assert_eq!(by_session.runtime_id, first.runtime_id);
    let another = world.send(said("4", &[900])).await.expect("taken");
    assert_eq!(another.status, EventReceiptStatus::PendingBind, "the same session, opened once more elsewhere");
}
