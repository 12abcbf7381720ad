//! Malformed action requests: each gets a readable error and the daemon keeps running.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use agtmux_testkit::action_fixture::{ActionFixture, assert_done, assert_refused};
use agtmux_testkit::agtmux::{SOON, items, list, pid, run, soak};
use agtmux_testkit::hostile_texts::{HOSTILE_TEXTS, tmux_argument_escaped};
use agtmux_testkit::http;
use agtmux_testkit::{wait_for, wait_until};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

const ACTIONS: [&str; 6] = ["send", "respond", "kill", "attach", "view-output", "snapshot"];
const KEYS: [&str; 18] = [
    "ref",
    "text",
    "keys",
    "no_enter",
    "profile",
    "answer",
    "signal",
    "lines",
    "ansi",
    "again",
    "snapshot_id",
    "nonce",
    "if_runtime",
    "if_state",
    "if_updated_within_ms",
    "if_dialog",
    "force_stale",
    "request_ref",
];

fn word() -> impl Strategy<Value = String> {
    let known =
        ["%0", "%1", "claude", "runtime:0", "pane:host/work/@0/%0", "idle", "Enter", "C-c", "tui", "KILL", "approve"];
    prop_oneof![3 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 2 => any::<String>(), 1 => "[ -~]{0,40}"]
}

fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    plain.prop_recursive(3, 12, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
        let fields = proptest::collection::vec((word(), inner), 0..3);
        prop_oneof![list, fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![8 => proptest::sample::select(KEYS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let fields = proptest::collection::vec((key, value()), 0..6);
    let object =
        fields.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()).to_string().into_bytes());
    prop_oneof![6 => object, 1 => value().prop_map(|value| value.to_string().into_bytes()), 1 => any::<Vec<u8>>()]
}

fn post(fixture: &ActionFixture, path: &str, body: &[u8]) -> Option<http::HttpResponse> {
    let head = http::request("POST", path, &format!("content-length: {}\r\n", body.len()));
    http::send(&fixture.socket(), &[&head, body].concat())
}

/// There is no pane, so no action can succeed.
#[test]
fn random_action_bodies_are_rejected_with_an_error() {
    let fixture = ActionFixture::new("");
    let daemon = pid(&fixture.world);
    let cases = if soak() { 20_000 } else { 400 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(proptest::sample::select(ACTIONS.to_vec()), body()), |(action, body)| {
        let answer = post(&fixture, &format!("/v1/actions/{action}"), &body);
        let answer = answer.ok_or_else(|| TestCaseError::fail("no answer"))?;
        prop_assert!((400..500).contains(&answer.status), "{} for {:?}", answer.status, answer.json());
        let error = answer.json();
        prop_assert!(
            error["code"].is_string() && error["message"].is_string() && error["hint"].is_string(),
            "{}",
            error
        );
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(pid(&fixture.world), daemon);
}

#[test]
fn unknown_fields_bad_references_and_huge_bodies_are_rejected() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let unknown = [
        ("send", json!({"ref": agent.pane, "text": "x", "if_sate": "idle"})),
        ("send", json!({"ref": agent.pane, "text": "x", "answer": "approve"})),
        ("kill", json!({"ref": agent.pane, "signal": "KILL", "text": "x"})),
        ("kill", json!({"ref": agent.pane, "signal": "HUP"})),
        ("kill", json!({"ref": agent.pane, "signal": 9})),
        ("respond", json!({"ref": agent.pane})),
        ("respond", json!({"ref": agent.pane, "answer": {"option": -1}})),
        ("send", json!({"ref": agent.pane, "text": "x", "if_state": "asleep"})),
        ("send", json!({"ref": agent.pane, "text": "x", "force_stale": "yes"})),
        ("send", json!({"ref": agent.pane, "text": ["x"]})),
        ("send", json!({"ref": agent.pane})),
        ("send", json!([])),
    ];
    for (action, body) in unknown {
        let answer = fixture.post(action, &body);
        assert_refused(&answer, "E_BAD_REQUEST");
        assert_eq!(answer.status, 400, "{body}");
    }
    for reference in ["", "%", "%x", "pane:", "runtime:", "a b", "=work", "%0;", "pane:host/work/@0/%0/x", "../x"] {
        assert_refused(&fixture.send(reference, "x"), "E_REF_INVALID");
    }
    let huge = vec![b' '; 6 << 20];
    let answer = post(&fixture, "/v1/actions/send", &huge).expect("an answer");
    assert_eq!(answer.status, 413);
    assert_refused(&answer, "E_TOO_LARGE");
    agent.assert_no_input();
}

/// Session names and texts that look like commands: each text arrives in the named pane and nothing is executed.
#[test]
fn session_names_and_texts_are_never_executed() {
    let fixture = ActionFixture::new("");
    let mark = fixture.world.dir().join("executed");
    // tmux rejects a session name with a carriage return.
    let names: Vec<&[u8]> = HOSTILE_TEXTS.into_iter().filter(|name| !name.contains(&b'\r')).collect();
    for (n, name) in names.iter().enumerate() {
        let input_file = fixture.world.home().join(format!("reader-{n}"));
        let read = format!("stty raw -echo; exec cat >{}", input_file.display());
        let mut new = fixture.server.command();
        new.env("MARK", &mark)
            .args(["new-session", "-d", "-x", "80", "-y", "24", "-s"])
            .arg(tmux_argument_escaped(name));
        let made = run(new.arg("--").args(["sh", "-c"]).arg(OsStr::from_bytes(read.as_bytes())));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        wait_until("the reader", SOON, || input_file.exists());
    }
    let panes = wait_for("every pane to be listed", SOON, || {
        let listing = list(&fixture.world);
        if items(&listing).len() == names.len() { Ok(items(&listing).clone()) } else { Err(listing.to_string()) }
    });
    for pane in &panes {
        let identity = &pane["identity"];
        let text = |field: &str| identity[field].as_str().expect("a word").to_owned();
        let (session, window, id) = (text("session_name"), text("window_id"), text("pane_id"));
        let n: usize = id[1..].parse().expect("a number");
        let reference = format!("pane:host/{}/{window}/{id}", encoded(&session));
        let hostile = String::from_utf8_lossy(names[n]).chars().filter(|c| !c.is_control()).collect::<String>();
        let answer =
            fixture.post("send", &json!({"ref": reference, "text": hostile, "profile": "shell", "no_enter": true}));
        assert_eq!(assert_done(&answer)["pane_id"], id, "{session:?}");
        let input_file = fixture.world.home().join(format!("reader-{n}"));
        wait_until("the text", SOON, || fs::read(&input_file).is_ok_and(|read| read.len() >= hostile.len()));
        assert_eq!(String::from_utf8_lossy(&fs::read(&input_file).expect("the input file exists")), hostile);
        // A reference by session name fails, because no agent runs in the session. A name such as %1 would refer to a
        // pane.
        if session.starts_with('%') {
            continue;
        }
        let bare = fixture.post("send", &json!({"ref": session, "text": "x", "profile": "shell"}));
        assert!(matches!(bare.json()["code"].as_str(), Some("E_REF_NOT_FOUND" | "E_REF_INVALID")), "{}", bare.json());
    }
    assert!(!mark.exists(), "a text was executed as a command");
    for n in 0..names.len() {
        let read = fs::read(fixture.world.home().join(format!("reader-{n}"))).expect("the input file exists");
        assert!(!read.ends_with(b"\r"), "Enter was pressed");
    }
}

fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
