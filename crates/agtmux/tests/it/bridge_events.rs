//! The bridge event stream for dashboards, and resuming it.

use std::io::{Read, Write};

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{SOON, items, list, start, stop, world};
use agtmux_testkit::bridge::{follow, hook, post, session_start};
use agtmux_testkit::http::{self, SseEvent, get};
use agtmux_testkit::{TestWorld, wait_until};
use serde_json::{Value, json};

fn start_agent(world: &TestWorld, session: &str) -> String {
    let tmux = world.tmux("default");
    let pane = tmux.new_session(session, &world.fake_agent_command("claude"));
    wait_until("the agent", SOON, || {
        items(&list(world)).iter().any(|i| i["identity"]["pane_id"] == pane && i["agent_type"] == "claude")
    });
    hook(world, "session-start", &session_start(session, &pane, tmux.socket()))
}

fn kinds(events: &[SseEvent]) -> Vec<String> {
    events.iter().map(|event| event.kind.clone().unwrap_or_default()).collect()
}

#[test]
fn a_turn_is_published_from_command_to_completion() {
    let world = world();
    start(&world);
    let events = follow(&world, "", None);
    let agent_id = start_agent(&world, "s1");
    events.until("the availability", |event| event.is("commander_availability"));
    hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": "go"}));
    let begun = events.until("the work", |event| event.data["new_state"] == "PROCESSING");
    assert_eq!(kinds(&begun), ["turn_created", "state_changed", "state_changed"]);
    assert_eq!((&begun[0].data["actor"], &begun[0].data["intent"]), (&json!("USER"), &json!("COMMAND")));
    assert_eq!((&begun[1].data["old_state"], &begun[1].data["new_state"]), (&json!("IDLE"), &json!("COMMANDED")));
    assert_eq!(begun[2].data["turn_id"], begun[0].data["turn_id"]);
    hook(&world, "stop", &json!({"session_id": "s1"}));
    let ended = events.until("the end", |event| event.data["new_state"] == "COMPLETE");
    assert_eq!(kinds(&ended), ["turn_created", "state_changed"]);
    assert_eq!((&ended[0].data["actor"], &ended[0].data["intent"]), (&json!("AGENT"), &json!("COMPLETION")));
    assert!(ended.iter().all(|event| event.data["agent_id"] == agent_id));
}

#[test]
fn the_stream_filters_by_type_and_agent() {
    let world = world();
    start(&world);
    let (one, _) = (start_agent(&world, "s1"), start_agent(&world, "s2"));
    let turns = follow(&world, &format!("?types=turn_created&agent_id={one}"), None);
    for session in ["s2", "s1"] {
        hook(&world, "user-prompt-submit", &json!({"session_id": session, "prompt": "go"}));
        hook(&world, "stop", &json!({"session_id": session}));
    }
    let seen = turns.until("the completion", |event| event.data["intent"] == "COMPLETION");
    assert_eq!(kinds(&seen), ["turn_created", "turn_created"]);
    assert!(seen.iter().all(|event| event.data["agent_id"] == one), "{seen:?}");
    assert_eq!(get(&world.socket(), "/api/events/stream?types=nonsense").status, 400);
    assert_eq!(get(&world.socket(), "/api/events/stream?typo=1").status, 400);
}

#[test]
fn a_resumed_stream_replays_missed_events_or_sends_resync() {
    let world = world();
    start(&world);
    start_agent(&world, "s1");
    let events = follow(&world, "?types=turn_created", None);
    let turn = |n: u32| hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": n.to_string()}));
    turn(1);
    let first = events.next().and_then(|event| event.id).expect("an id");
    drop(events);
    turn(2);
    turn(3);
    let again = follow(&world, "?types=turn_created", Some(first));
    let ids: Vec<u64> = [again.next(), again.next()].into_iter().flatten().filter_map(|event| event.id).collect();
    assert!(ids.len() == 2 && ids[0] > first && ids[1] > ids[0], "{ids:?} after {first}");
    stop(&world);
    start(&world);
    let too_late = follow(&world, "", Some(first));
    assert!(too_late.next().is_some_and(|event| event.is("resync")), "the id belongs to the previous daemon");
}

/// The id that the stream sends before its first event.
fn first_stream_id(world: &TestWorld) -> u64 {
    let mut stream = http::connect(&world.socket());
    stream
        .write_all(&http::request("GET", "/api/events/stream?types=session_ended", ""))
        .expect("the daemon reads the request");
    let (mut seen, mut byte) = (String::new(), [0]);
    while !seen.contains("\r\n\r\n") || !seen.ends_with("\n\n") {
        stream.read_exact(&mut byte).expect("the stream starts with a frame");
        seen.push(byte[0].into());
    }
    let id = seen.rsplit_once("id: ").unwrap_or_else(|| panic!("no id in {seen}")).1;
    id.trim().parse().expect("a number")
}

#[test]
fn a_stream_can_be_resumed_from_its_first_id() {
    let world = world();
    start(&world);
    start_agent(&world, "s1");
    let id = first_stream_id(&world);
    hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": "while no reader is connected"}));
    let again = follow(&world, "?types=turn_created", Some(id));
    assert!(again.next().is_some_and(|event| event.is("turn_created")));
}

#[test]
fn moving_or_renaming_a_tmux_session_publishes_no_session_event() {
    let world = world();
    start(&world);
    start_agent(&world, "s1");
    let tmux = world.tmux("default");
    tmux.new_session("there", "cat");
    let wait_for_session = |name: &str| {
        wait_until(&format!("the pane to be in {name}"), SOON, || {
            items(&list(&world))[0]["identity"]["session_name"] == name
        });
    };
    let events = follow(&world, "", None);
    tmux.run(&["rename-session", "-t", "=s1", "otherwise"]);
    wait_for_session("otherwise");
    tmux.run(&["move-window", "-s", "=otherwise:", "-t", "=there:9"]);
    wait_for_session("there");
    hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": "go"}));
    let seen = events.until("the turn", |event| event.is("turn_created"));
    assert!(!seen.iter().any(|event| event.is("session_ended") || event.is("session_created")), "{seen:?}");
}

#[test]
fn a_daemon_restart_does_not_republish_known_sessions() {
    let world = world();
    start(&world);
    let before = start_agent(&world, "s1");
    stop(&world);
    start(&world);
    let events = follow(&world, "", None);
    let after = start_agent(&world, "s2");
    assert_ne!(before, after);
    let mut seen = events.until("the new one", |event| event.is("commander_availability"));
    seen.retain(|event| event.is("session_created") || event.is("commander_availability"));
    assert!(seen.iter().all(|event| event.data["agent_id"] == after), "{seen:?}");
}

fn agent_with_question(fixture: &ActionFixture) -> (RecordingAgent, String) {
    let agent = fixture.agent("work");
    let agent_id = hook(&fixture.world, "session-start", &session_start("s1", &agent.pane, agent.server.socket()));
    fixture.show_scene(&agent, "asks", "waiting_input");
    (agent, agent_id)
}

fn respond(fixture: &ActionFixture, agent_id: &str, body: &Value) -> (u16, Value) {
    let answer = post(&fixture.world, &format!("/api/respond/{agent_id}"), &body.to_string());
    (answer.status, answer.json())
}

/// The ids of the stored answer turns, oldest first.
fn stored_answers(fixture: &ActionFixture) -> Vec<String> {
    let database = rusqlite::Connection::open(fixture.world.state_dir().join("state.db")).expect("a database");
    let sql = "SELECT turn_id FROM turns WHERE actor = 'USER' AND intent = 'ANSWER' ORDER BY at";
    let mut turns = database.prepare(sql).expect("there are turns");
    let turns = turns.query_map([], |row| row.get(0)).expect("readable");
    turns.collect::<Result<_, _>>().expect("texts")
}

#[test]
fn answers_given_before_a_refusal_are_stored_as_a_turn() {
    let fixture = ActionFixture::new("");
    let (agent, agent_id) = agent_with_question(&fixture);
    let events = follow(&fixture.world, "?types=turn_created,state_changed", None);
    let (status, error) = respond(&fixture, &agent_id, &json!({"mode": "select", "option_index": 7}));
    assert_eq!((status, stored_answers(&fixture).len()), (400, 0), "{error}");
    let two = json!({"mode": "multi_select", "answers": [{"option_index": 0}, {"option_index": 1}]});
    let (status, error) = respond(&fixture, &agent_id, &two);
    assert_eq!((status, &error["error_type"]), (409, &json!("wrong_state")), "{error}");
    assert!(
        error["message"].as_str().is_some_and(|message| message.starts_with("1 of 2 answers were sent")),
        "{error}"
    );
    assert_eq!(agent.complete_input(), b"1");
    let [turn] = &stored_answers(&fixture)[..] else { panic!("expected one answer: {:?}", stored_answers(&fixture)) };
    let mut seen = events.until("the turn", |event| event.is("turn_created"));
    assert_eq!(seen.last().expect("the turn").data["turn_id"], *turn);
    if !seen.iter().any(|event| event.is("state_changed")) {
        seen.extend(events.next());
    }
    let changed = seen.iter().find(|event| event.is("state_changed")).expect("the agent continues");
    assert_eq!((&changed.data["new_state"], &changed.data["turn_id"]), (&json!("PROCESSING"), &json!(turn)));
}

#[test]
fn a_repeated_respond_request_creates_one_turn() {
    let fixture = ActionFixture::new("");
    let (agent, agent_id) = agent_with_question(&fixture);
    let body = json!({"mode": "select", "option_index": 0, "request_ref": "mine"});
    let (status, first) = respond(&fixture, &agent_id, &body);
    assert_eq!(status, 200, "{first}");
    let events = follow(&fixture.world, "?types=turn_created", None);
    let (status, again) = respond(&fixture, &agent_id, &body);
    assert_eq!((status, &again["turn_id"]), (200, &first["turn_id"]), "{again}");
    assert_eq!(again["new_state"], "PROCESSING", "the current state: {again}");
    assert_eq!(stored_answers(&fixture), [first["turn_id"].as_str().expect("an id")]);
    assert_eq!(agent.complete_input(), b"1");
    let (status, other) =
        respond(&fixture, &agent_id, &json!({"option_index": 1, "mode": "select", "request_ref": "mine"}));
    assert_eq!((status, &other["code"]), (409, &json!("E_IDEMPOTENCY_CONFLICT")), "{other}");
    // The next published turn is a new one.
    fixture.show_scene(&agent, "asks", "waiting_input");
    let (_, next) = respond(&fixture, &agent_id, &json!({"mode": "select", "option_index": 1}));
    assert_eq!(events.next().expect("an event").data["turn_id"], next["turn_id"]);
}

#[test]
fn of_two_concurrent_responds_one_succeeds() {
    let fixture = ActionFixture::new("");
    let (agent, agent_id) = agent_with_question(&fixture);
    let events = follow(&fixture.world, "?types=state_changed", None);
    let both: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| respond(&fixture, &agent_id, &json!({"mode": "select", "option_index": 0})));
        let requests = [ask(), ask()];
        requests.into_iter().map(|one| one.join().expect("the request is answered")).collect()
    });
    let done: Vec<&Value> = both.iter().filter(|(status, _)| *status == 200).map(|(_, body)| body).collect();
    let [done] = done[..] else { panic!("exactly one must succeed: {both:?}") };
    assert!(both.iter().any(|(status, _)| *status == 409), "{both:?}");
    assert_eq!(agent.complete_input(), b"1");
    assert_eq!(stored_answers(&fixture).len(), 1);
    assert_eq!(events.next().expect("an event").data["turn_id"], done["turn_id"]);
}

#[test]
fn both_extensions_registered() {
    let world = world();
    start(&world);
    let components = get(&world.socket(), "/v1/health").json()["components"].clone();
    for name in ["tmux_bridge", "commander_availability"] {
        assert_eq!(components[name]["status"], "ok", "{components}");
    }
}
