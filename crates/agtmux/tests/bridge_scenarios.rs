//! The scenarios of the tmux-bridge document that need no real agent, each by its name. `docs/bridge.md` has the table of all.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use std::fs;
use std::time::Duration;

use agtmux::{SOON, agtmux, configure, script, world};
use agtmux_testkit::{process, wait_for, wait_until};
use bridge::{follow, hook, post, session_start};
use http::{Answer, get};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Agent, Stage, assert_done};

/// An agent with a session, as its hooks told.
#[track_caller]
fn agent_with_session(stage: &Stage, session: &str) -> (Agent, String) {
    let agent = stage.agent(session);
    let agent_id = hook(&stage.world, "session-start", &session_start(session, &agent.pane, agent.server.socket()));
    (agent, agent_id)
}

#[track_caller]
fn respond(stage: &Stage, agent_id: &str, body: &Value) -> Answer {
    post(&stage.world, &format!("/api/respond/{agent_id}"), &body.to_string())
}

fn first_option() -> Value {
    json!({"mode": "select", "option_index": 0})
}

#[track_caller]
fn assert_error(answer: &Answer, status: u16, error_type: &str) {
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
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let text = "words with 'quotes', $(commands) and #{formats}; Enter";
    let done = assert_done(&stage.send(&agent.pane, text));
    assert_eq!((&done["verified"], &done["bytes"]), (&json!("confirmed"), &json!(text.len())), "{done}");
    assert!(done["latency_ms"].is_u64(), "{done}");
    assert_eq!(agent.submitted(), [text], "one paste, and an Enter of its own");
}

/// Of a program whose box is not known only a change of its screen can be seen, and that proves nothing.
#[test]
fn enter_verification_with_content_change_check_for_short_text() {
    let stage = Stage::new("");
    let echoes = stage.server.new_session("echoes", "cat");
    let silent = stage.server.new_session("silent", "stty -echo; exec cat >/dev/null");
    for (pane, by) in [(echoes, "change"), (silent, "nothing")] {
        let body = json!({"ref": pane, "text": "short", "profile": "shell"});
        let done = wait_for("the pane to be known", SOON, || {
            let answer = stage.post("send", &body);
            if answer.status == 200 { Ok(answer.json()) } else { Err(answer.json()) }
        });
        assert_eq!((&done["verified"], &done["by"]), (&json!("inconclusive"), &json!(by)), "{done}");
    }
}

#[test]
fn send_special_keys_to_tmux_pane() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let keys = json!(["Up", "Down", "C-u", "C-c", "Escape", "Enter"]);
    assert_done(&stage.post("send", &json!({"ref": agent.pane, "keys": keys})));
    assert_eq!(agent.all_read(), b"\x1b[A\x1b[B\x15\x03\x1b\r");
}

#[test]
fn tmux_pane_does_not_exist() {
    let stage = Stage::new("");
    stage.server.new_session("keeper", "cat");
    let (agent, agent_id) = agent_with_session(&stage, "work");
    stage.show(&agent, "asks", "waiting_input");
    agent.server.run(&["kill-pane", "-t", &agent.pane]);
    // At once, and when everybody knows.
    assert_error(&respond(&stage, &agent_id, &first_option()), 503, "pane_not_found");
    wait_until("it to be gone", SOON, || stage.item(&agent).is_none());
    assert_error(&respond(&stage, &agent_id, &first_option()), 503, "pane_not_found");
    assert_eq!(stage.send("%77", "hello").json()["code"], "E_REF_NOT_FOUND");
}

/// A daemon whose tmux can be made to fail: `break_tmux` with a word makes it do so. It is waited for as long as this.
fn fixture_with_breakable_tmux(patience: &str) -> Stage {
    Stage::with(|world| {
        let tmux = script(
            world,
            "fragile-tmux",
            "case $(cat \"$0.fault\" 2>/dev/null) in\nhangs) exec sleep 60 ;;\nfails) echo 'it fails' >&2; exit 1 ;;\nesac\nexec tmux \"$@\"",
        );
        format!("tmux.program = '{}'\ntmux_bridge.subprocess_timeout = '{patience}'\n", tmux.display())
    })
}

fn break_tmux(stage: &Stage, fault: &str) {
    fs::write(stage.world.home().join("fragile-tmux.fault"), fault).expect("the world is writable");
}

/// What is answered while tmux has this fault. Nothing is typed then.
fn respond_with_broken_tmux(stage: &Stage, fault: impl FnOnce(&Stage)) -> Answer {
    let (agent, agent_id) = agent_with_session(stage, "work");
    stage.show(&agent, "asks", "waiting_input");
    fault(stage);
    let answer = respond(stage, &agent_id, &first_option());
    agent.assert_untouched();
    answer
}

#[test]
fn tmux_not_installed() {
    let stage = fixture_with_breakable_tmux("5s");
    let tmux = stage.world.home().join("fragile-tmux");
    let answer = respond_with_broken_tmux(&stage, |_| fs::remove_file(&tmux).expect("it was there"));
    assert_error(&answer, 503, "tmux_not_installed");
}

#[test]
fn subprocess_timeout() {
    let stage = fixture_with_breakable_tmux("700ms");
    let answer = respond_with_broken_tmux(&stage, |stage| break_tmux(stage, "hangs"));
    assert_error(&answer, 502, "timeout");
    break_tmux(&stage, "");
}

/// The others have a test of their own.
#[test]
fn error_type_mapping() {
    let stage = fixture_with_breakable_tmux("5s");
    let answer = respond_with_broken_tmux(&stage, |stage| break_tmux(stage, "fails"));
    assert_error(&answer, 502, "subprocess_failed");
    break_tmux(&stage, "");
    let (agent, agent_id) = agent_with_session(&stage, "deaf");
    // It reads the key, and asks on.
    stage.show(&agent, "dialog", "waiting_approval");
    assert_error(&respond(&stage, &agent_id, &first_option()), 502, "send_failed");
    assert_eq!(agent.all_read(), b"1");
    stage.show(&agent, "idle", "idle");
    assert_error(&respond(&stage, &agent_id, &first_option()), 409, "wrong_state");
}

#[test]
fn agent_has_no_pane_id() {
    let stage = Stage::new("");
    let agent_id =
        hook(&stage.world, "session-start", &json!({"session_id": "elsewhere", "working_directory": "/tmp"}));
    assert_error(&respond(&stage, &agent_id, &first_option()), 400, "no_pane_id");
    assert_error(&respond(&stage, "nobody", &first_option()), 404, "agent_not_found");
}

#[test]
fn api_contract_preserved() {
    let stage = Stage::new("");
    let (agent, agent_id) = agent_with_session(&stage, "work");
    stage.show(&agent, "asks", "waiting_input");
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
        let answer = respond(&stage, &agent_id, &body);
        assert_error(&answer, 400, error_type);
        assert_eq!(field_names(&answer.json()), ["code", "error_type", "hint", "message", "status"]);
    }
    agent.assert_untouched();
    let answer = respond(&stage, &agent_id, &first_option());
    let said = answer.json();
    let expected = ["agent_id", "latency_ms", "mode", "new_state", "status", "turn_id", "verified"];
    assert_eq!((answer.status, field_names(&said)), (200, expected.to_vec()), "{said}");
    assert_eq!((&said["status"], &said["new_state"]), (&json!("ok"), &json!("PROCESSING")), "{said}");
    assert_eq!(agent.all_read(), b"1");
}

#[test]
fn availability_sse_events() {
    let stage = Stage::new("");
    stage.server.new_session("keeper", "cat");
    let events = follow(&stage.world, "?types=commander_availability", None);
    let (agent, agent_id) = agent_with_session(&stage, "work");
    let told = events.next().expect("an event").data;
    assert_eq!(field_names(&told), ["agent_id", "available", "timestamp"]);
    assert_eq!((&told["agent_id"], &told["available"]), (&json!(agent_id), &json!(true)));
    assert!(told["timestamp"].as_str().is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok()), "{told}");
    let asked = || get(&stage.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    assert_eq!(asked()["commander_available"], true);
    agent.server.run(&["kill-pane", "-t", &agent.pane]);
    assert_eq!(events.next().expect("an event").data["available"], false, "the next one tells of a change");
    assert_eq!(asked()["commander_available"], false);
}

/// A tmux server that does not answer is no event of any agent: only looking at it tells.
#[test]
fn background_health_check() {
    let stage = Stage::new("tmux_bridge.health_check_interval = '1s'\ntmux_bridge.subprocess_timeout = '500ms'");
    let (_agent, agent_id) = agent_with_session(&stage, "work");
    let events = follow(&stage.world, &format!("?types=commander_availability&agent_id={agent_id}"), None);
    let server = stage.server.pid();
    let is_available = || get(&stage.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    wait_until("it to be reachable", SOON, || is_available()["commander_available"] == true);
    process::signal(server, Signal::STOP);
    events.until("it to be out of reach", |event| event.data["available"] == false);
    // It is looked at again and again meanwhile.
    let more = events.next_within(Duration::from_secs(3));
    process::signal(server, Signal::CONT);
    assert!(more.is_none(), "only changes are told: {more:?}");
    events.until("it to be reachable again", |event| event.data["available"] == true);
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
    // The same shape as YAML.
    let yaml = world.config_file().with_extension("yaml");
    fs::remove_file(world.config_file()).expect("it was written");
    fs::write(&yaml, "tmux_bridge:\n  sequential_send_delay_ms: 70\n").expect("the world is writable");
    assert!(shown().contains("sequential_send_delay_ms = 70"), "{}", shown());
}
