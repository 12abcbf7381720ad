//! The scenarios of the tmux-bridge document that need no real agent. Each test has the name of its scenario;
//! `docs/dev/bridge-scenarios.md` lists all of them.

use std::fs;
use std::time::Duration;

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, assert_done};
use agtmux_testkit::agtmux::{SOON, agtmux, configure, script, world};
use agtmux_testkit::bridge::{follow, hook, post, session_start};
use agtmux_testkit::http::{HttpResponse, get};
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Starts an agent and reports its session by a hook.
#[track_caller]
fn agent_with_session(fixture: &ActionFixture, session: &str) -> (RecordingAgent, String) {
    let agent = fixture.agent(session);
    let agent_id = hook(&fixture.world, "session-start", &session_start(session, &agent.pane, agent.server.socket()));
    (agent, agent_id)
}

#[track_caller]
fn respond(fixture: &ActionFixture, agent_id: &str, body: &Value) -> HttpResponse {
    post(&fixture.world, &format!("/api/respond/{agent_id}"), &body.to_string())
}

fn first_option() -> Value {
    json!({"mode": "select", "option_index": 0})
}

#[track_caller]
fn assert_error(answer: &HttpResponse, status: u16, error_type: &str) {
    let error = answer.json();
    assert_eq!((answer.status, error["error_type"].as_str()), (status, Some(error_type)), "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error}");
}

fn field_names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn send_literal_text_to_tmux_pane() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let text = "words with 'quotes', $(commands) and #{formats}; Enter";
    let done = assert_done(&fixture.send(&agent.pane, text));
    assert_eq!((&done["verified"], &done["bytes"]), (&json!("confirmed"), &json!(text.len())), "{done}");
    assert!(done["latency_ms"].is_u64(), "{done}");
    assert_eq!(agent.submitted_texts(), [text], "one paste, then a separate Enter");
}

/// If agtmux does not know the input box of a program, it can only check whether the screen has changed. The result is
/// therefore inconclusive.
#[test]
fn enter_verification_with_content_change_check_for_short_text() {
    let fixture = ActionFixture::new("");
    let echoes = fixture.server.new_session("echoes", "cat");
    let silent = fixture.server.new_session("silent", "stty -echo; exec cat >/dev/null");
    for (pane, by) in [(echoes, "change"), (silent, "nothing")] {
        let body = json!({"ref": pane, "text": "short", "profile": "shell"});
        let done = wait_for("the pane to be known", SOON, || {
            let answer = fixture.post("send", &body);
            if answer.status == 200 { Ok(answer.json()) } else { Err(answer.json()) }
        });
        assert_eq!((&done["verified"], &done["by"]), (&json!("inconclusive"), &json!(by)), "{done}");
    }
}

#[test]
fn send_special_keys_to_tmux_pane() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let keys = json!(["Up", "Down", "C-u", "C-c", "Escape", "Enter"]);
    assert_done(&fixture.post("send", &json!({"ref": agent.pane, "keys": keys})));
    assert_eq!(agent.complete_input(), b"\x1b[A\x1b[B\x15\x03\x1b\r");
}

#[test]
fn tmux_pane_does_not_exist() {
    let fixture = ActionFixture::new("");
    fixture.server.new_session("keeper", "cat");
    let (agent, agent_id) = agent_with_session(&fixture, "work");
    fixture.show_scene(&agent, "asks", "waiting_input");
    agent.server.run(&["kill-pane", "-t", &agent.pane]);
    // The error is the same before and after the daemon notices that the pane is gone.
    assert_error(&respond(&fixture, &agent_id, &first_option()), 503, "pane_not_found");
    wait_until("the pane to be gone", SOON, || fixture.item(&agent).is_none());
    assert_error(&respond(&fixture, &agent_id, &first_option()), 503, "pane_not_found");
    assert_eq!(fixture.send("%77", "hello").json()["code"], "E_REF_NOT_FOUND");
}

/// A daemon whose tmux program can be broken with `break_tmux`. `timeout` is the time limit of a tmux call.
fn fixture_with_breakable_tmux(timeout: &str) -> ActionFixture {
    ActionFixture::with_world(|world| {
        let tmux = script(
            world,
            "fragile-tmux",
            "case $(cat \"$0.fault\" 2>/dev/null) in\nhangs) exec sleep 60 ;;\nfails) echo 'it fails' >&2; exit 1 ;;\nesac\nexec tmux \"$@\"",
        );
        format!("tmux.program = '{}'\ntmux_bridge.subprocess_timeout = '{timeout}'\n", tmux.display())
    })
}

fn break_tmux(fixture: &ActionFixture, fault: &str) {
    fs::write(fixture.world.home().join("fragile-tmux.fault"), fault).expect("the world is writable");
}

/// Responds while tmux has this fault, and checks that nothing was typed.
fn respond_with_broken_tmux(fixture: &ActionFixture, fault: impl FnOnce(&ActionFixture)) -> HttpResponse {
    let (agent, agent_id) = agent_with_session(fixture, "work");
    fixture.show_scene(&agent, "asks", "waiting_input");
    fault(fixture);
    let answer = respond(fixture, &agent_id, &first_option());
    agent.assert_no_input();
    answer
}

#[test]
fn tmux_not_installed() {
    let fixture = fixture_with_breakable_tmux("5s");
    let tmux = fixture.world.home().join("fragile-tmux");
    let answer = respond_with_broken_tmux(&fixture, |_| fs::remove_file(&tmux).expect("the wrapper exists"));
    assert_error(&answer, 503, "tmux_not_installed");
}

#[test]
fn subprocess_timeout() {
    let fixture = fixture_with_breakable_tmux("700ms");
    let answer = respond_with_broken_tmux(&fixture, |fixture| break_tmux(fixture, "hangs"));
    assert_error(&answer, 502, "timeout");
    break_tmux(&fixture, "");
}

/// The remaining error types have their own tests.
#[test]
fn error_type_mapping() {
    let fixture = fixture_with_breakable_tmux("5s");
    let answer = respond_with_broken_tmux(&fixture, |fixture| break_tmux(fixture, "fails"));
    assert_error(&answer, 502, "subprocess_failed");
    break_tmux(&fixture, "");
    let (agent, agent_id) = agent_with_session(&fixture, "deaf");
    // The agent reads the key and keeps its dialog open.
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    assert_error(&respond(&fixture, &agent_id, &first_option()), 502, "send_failed");
    assert_eq!(agent.complete_input(), b"1111", "the key is pressed again, because the screen does not change");
    fixture.show_scene(&agent, "idle", "idle");
    assert_error(&respond(&fixture, &agent_id, &first_option()), 409, "wrong_state");
}

#[test]
fn agent_has_no_pane_id() {
    let fixture = ActionFixture::new("");
    let agent_id =
        hook(&fixture.world, "session-start", &json!({"session_id": "elsewhere", "working_directory": "/tmp"}));
    assert_error(&respond(&fixture, &agent_id, &first_option()), 400, "no_pane_id");
    assert_error(&respond(&fixture, "missing", &first_option()), 404, "agent_not_found");
}

#[test]
fn api_contract_preserved() {
    let fixture = ActionFixture::new("");
    let (agent, agent_id) = agent_with_session(&fixture, "work");
    fixture.show_scene(&agent, "asks", "waiting_input");
    for (body, error_type) in [
        (json!({"mode": "shout"}), "invalid_mode"),
        (json!({"mode": "text"}), "missing_text"),
        (json!({"text": ""}), "missing_text"),
        (json!({"mode": "other"}), "missing_text"),
        (json!({"mode": "select"}), "invalid_option_index"),
        (json!({"mode": "select", "option_index": -1}), "invalid_option_index"),
        (json!({"mode": "select", "option_index": 7}), "invalid_option_index"),
        (json!({"mode": "multi_select"}), "invalid_answers"),
        (json!({"mode": "multi_select", "answers": ["Red"]}), "invalid_answers"),
        (json!({"mode": "multi_select", "answers": [0, 1]}), "invalid_answers"),
    ] {
        let answer = respond(&fixture, &agent_id, &body);
        assert_error(&answer, 400, error_type);
        assert_eq!(field_names(&answer.json()), ["code", "error_type", "hint", "message", "status"]);
    }
    agent.assert_no_input();
    let answer = respond(&fixture, &agent_id, &first_option());
    let response = answer.json();
    let expected = ["agent_id", "latency_ms", "mode", "new_state", "status", "turn_id", "verified"];
    assert_eq!((answer.status, field_names(&response)), (200, expected.to_vec()), "{response}");
    assert_eq!((&response["status"], &response["new_state"]), (&json!("ok"), &json!("PROCESSING")), "{response}");
    assert_eq!(agent.complete_input(), b"1");
}

#[test]
fn availability_sse_events() {
    let fixture = ActionFixture::new("");
    fixture.server.new_session("keeper", "cat");
    let events = follow(&fixture.world, "?types=commander_availability", None);
    let (agent, agent_id) = agent_with_session(&fixture, "work");
    let event = events.next().expect("an event").data;
    assert_eq!(field_names(&event), ["agent_id", "available", "timestamp"]);
    assert_eq!((&event["agent_id"], &event["available"]), (&json!(agent_id), &json!(true)));
    assert!(event["timestamp"].as_str().is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok()), "{event}");
    let availability = || get(&fixture.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    assert_eq!(availability()["commander_available"], true);
    agent.server.run(&["kill-pane", "-t", &agent.pane]);
    assert_eq!(events.next().expect("an event").data["available"], false, "only changes are published");
    assert_eq!(availability()["commander_available"], false);
}

/// Only the periodic health check detects a tmux server that does not answer.
#[test]
fn background_health_check() {
    let fixture =
        ActionFixture::new("tmux_bridge.health_check_interval = '1s'\ntmux_bridge.subprocess_timeout = '500ms'");
    let (_agent, agent_id) = agent_with_session(&fixture, "work");
    let events = follow(&fixture.world, &format!("?types=commander_availability&agent_id={agent_id}"), None);
    let server = fixture.server.pid();
    let is_available = || get(&fixture.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    wait_until("the agent to be reachable", SOON, || is_available()["commander_available"] == true);
    process::signal(server, Signal::STOP);
    events.until("the agent to be unreachable", |event| event.data["available"] == false);
    // The health check runs several times meanwhile.
    let more = events.next_within(Duration::from_secs(3));
    process::signal(server, Signal::CONT);
    assert!(more.is_none(), "only changes are published: {more:?}");
    events.until("the agent to be reachable again", |event| event.data["available"] == true);
}

#[test]
fn config_values() {
    let world = world();
    let shown = || agtmux(&world, &["config", "show"]).text();
    let defaults = [
        "health_check_interval = \"30s\"",
        "subprocess_timeout = \"5s\"",
        "text_enter_delay_ms = 120",
        "sequential_send_delay_ms = 150",
    ];
    for line in defaults {
        assert!(shown().contains(line), "{line} is not in {}", shown());
    }
    configure(&world, "[tmux_bridge]\ntext_enter_delay_ms = 90\n");
    assert!(shown().contains("text_enter_delay_ms = 90"), "{}", shown());
    // The same settings as YAML.
    let yaml = world.config_file().with_extension("yaml");
    fs::remove_file(world.config_file()).expect("the config exists");
    fs::write(&yaml, "tmux_bridge:\n  sequential_send_delay_ms: 70\n").expect("the world is writable");
    assert!(shown().contains("sequential_send_delay_ms = 70"), "{}", shown());
}
