//! Every action is written down, without the secrets that were in it, and what cannot be written down is not done.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use std::fs;

use agtmux::{SOON, agtmux, list, start, stop};
use agtmux_testkit::{TestWorld, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};
use stage::{Stage, assert_done, assert_refused};

/// None of them is one.
const SECRETS: [&str; 3] = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGhIjKlMnOpQrStUv-AAAAAAAA",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "AKIAIOSFODNN7EXAMPLE",
];

/// Every byte that the daemon has written in this world.
fn state_dir_bytes(world: &TestWorld) -> Vec<u8> {
    let mut all = Vec::new();
    let mut open = vec![world.state_dir()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => all.extend(fs::read(entry.path()).unwrap_or_default()),
                _ => {}
            }
        }
    }
    all
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn who_did_what_to_whom_and_what_came_of_it() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let sent = assert_done(&stage.post("send", &json!({"ref": agent.pane, "text": "noted", "client": "a test"})));
    assert_refused(&stage.post("send", &json!({"ref": "nobody", "text": "noted"})), "E_REF_NOT_FOUND");
    assert_refused(&stage.post("kill", &json!({"ref": agent.pane, "if_state": "error"})), "E_STATE_CHANGED");
    assert_refused(&stage.post("respond", &json!({"ref": agent.pane, "answer": "approve"})), "E_PRECONDITION");
    let shown = agtmux(&stage.world, &["send", &agent.pane, "--key", "C-u", "--key", "x", "--key", "y"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let records = stage.audit();
    let brief = |r: &Value| [&r["kind"], &r["status"], &r["code"]].map(|v| v.as_str().unwrap_or("-").to_owned());
    let seen: Vec<[String; 3]> = records.iter().map(brief).collect();
    let expected = [
        ["send", "done", "-"],
        ["send", "refused", "E_REF_NOT_FOUND"],
        ["kill", "refused", "E_STATE_CHANGED"],
        ["respond", "refused", "E_PRECONDITION"],
        ["send", "done", "-"],
    ];
    assert_eq!(seen, expected);
    let first = &records[0];
    let uid = rustix::process::getuid().as_raw();
    let caller = &first["caller"];
    assert_eq!((&caller["uid"], &caller["pid"]), (&json!(uid), &json!(std::process::id())));
    assert_eq!((&caller["via"], &caller["client"]), (&json!("unix"), &json!("a test")));
    assert!(caller["program"].as_str().is_some_and(|name| name.starts_with("actions_audit")), "{caller}");
    assert_eq!(
        (&first["ref"], &first["pane_id"], &first["server"]),
        (&json!(agent.pane), &json!(agent.pane), &json!("default"))
    );
    assert_eq!(first["runtime_id"].as_str().map(|id| format!("runtime:{id}")), Some(agent.runtime.clone()));
    assert_eq!((&first["snapshot_id"], &first["action_id"]), (&sent["snapshot_id"], &sent["action_id"]));
    assert_eq!((&first["text"], &first["bytes"], &first["forced"]), (&json!("noted"), &json!(5), &json!(false)));
    assert!(first["finished_at"].is_string() && first["event_ids"].is_array(), "{first}");
    assert_eq!(first["result"]["verified"], sent["verified"]);
    assert!(records[2]["message"].is_string() && records[2]["snapshot_id"].is_null(), "{}", records[2]);
    assert_eq!((&records[4]["what"], &records[4]["caller"]["client"]), (&json!("keys C-u xy"), &json!("cli")));
    let one = stage.get(&format!("/v1/actions/{}", first["action_id"].as_str().expect("an id")));
    assert_eq!(&one, first);
    assert_eq!(stage.get("/v1/actions/nothing")["code"], "E_NOT_FOUND");
    let since = first["finished_at"].as_str().expect("a time").to_owned();
    let later = stage.get(&format!("/v1/audit?since={since}&limit=2"));
    assert_eq!(later["items"].as_array().map(Vec::len), Some(2), "the newest two: {later}");
    assert_eq!(stage.get("/v1/audit?sinse=1")["code"], "E_BAD_REQUEST");
}

#[test]
fn what_cannot_be_read_is_written_down_too_and_what_is_cut_says_so() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let bad = [
        (
            "send",
            json!({"ref": agent.pane, "text": "x", "if_stat": "idle", "client": "c".repeat(99)}),
            agent.pane.as_str(),
        ),
        ("respond", json!({"ref": agent.pane, "answer": 7}), agent.pane.as_str()),
        ("kill", json!({"ref": agent.pane, "signal": "HUP"}), agent.pane.as_str()),
        ("resume", json!({"ref": 3}), ""),
        ("attach", json!([agent.pane]), ""),
        ("view-output", json!({"ref": agent.pane, "lines": -1}), agent.pane.as_str()),
    ];
    for (action, body, _) in &bad {
        assert_refused(&stage.post(action, body), "E_BAD_REQUEST");
    }
    let records = stage.audit();
    let seen =
        |r: &Value| [&r["kind"], &r["status"], &r["code"], &r["ref"]].map(|v| v.as_str().unwrap_or("-").to_owned());
    let expected = bad.map(|(action, _, name)| [action, "refused", "E_BAD_REQUEST", name].map(str::to_owned));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    for record in &records {
        assert_eq!(record["caller"]["pid"], json!(std::process::id()), "{record}");
        assert!(record["message"].is_string() && record["finished_at"].is_string(), "{record}");
    }
    assert_eq!(records[0]["caller"]["client"], json!(format!("{}… [cut]", "c".repeat(64))));
    // A secret at the cut is none afterwards, and what was cut is not taken for all of it.
    let long = format!("{} {}", "é".repeat(230), format!("{} ", SECRETS[1]).repeat(40));
    assert_refused(&stage.post("attach", &json!({"ref": long})), "E_REF_INVALID");
    let record = stage.audit().pop().expect("written down");
    let name = record["ref"].as_str().expect("a text");
    assert!(name.ends_with("… [cut]") && !name.contains("ghp_"), "{name}");
}

/// Whoever follows is written down once, and whoever only says so is written down as well.
#[test]
fn the_first_look_is_written_down_whatever_it_is_called() {
    let stage = Stage::new("");
    let (agent, other) = (stage.agent("work"), stage.agent("other"));
    for reference in [&agent.pane, &agent.runtime, &agent.pane, &other.pane] {
        assert_done(&stage.post("view-output", &json!({"ref": reference, "again": true})));
    }
    let looks: Vec<Value> = stage.audit().iter().map(|record| record["ref"].clone()).collect();
    assert_eq!(looks, [json!(agent.pane), json!(other.pane)]);
}

/// An agent's own word is named by its event.
#[test]
fn the_events_that_tell_of_it_are_named() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    agent.draws("stuck");
    let event = json!({
        "event_type": "UserPromptSubmit", "source": "hook", "agent_type": "claude", "dedupe_key": "one",
        "runtime_id": agent.runtime.trim_start_matches("runtime:"),
        "raw_payload": {"session_id": "s", "prompt": "tell me", "hook_event_name": "UserPromptSubmit"},
    });
    let done = std::thread::scope(|scope| {
        let sending = scope.spawn(|| stage.send(&agent.pane, "tell me").json());
        wait_until("the text", SOON, || agent.read().ends_with(b"\r"));
        let body = event.to_string();
        let mut request = http::request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len()));
        request.extend(body.as_bytes());
        let answer = http::send(&stage.socket(), &request).expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.json());
        (sending.join().expect("answered"), answer.json())
    });
    assert_eq!((&done.0["verified"], &done.0["by"]), (&json!("confirmed"), &json!("event")), "{done:?}");
    assert_eq!(done.0["event_ids"], json!([done.1["event_id"]]));
    assert_eq!(stage.audit()[0]["event_ids"], done.0["event_ids"]);
}

#[test]
fn secrets_are_not_written_anywhere() {
    let stage = Stage::new("daemon.log_level = \"trace\"");
    let agent = stage.agent("work");
    for secret in SECRETS {
        assert_done(&stage.send(&agent.pane, &format!("use {secret} for it")));
        // Whatever else comes from outside.
        for body in [
            json!({"ref": secret, "text": secret}),
            json!({"ref": agent.pane, "text": format!("{secret}\u{1b}")}),
            json!({"ref": agent.pane, "keys": [secret]}),
            json!({"ref": agent.pane, "text": "x", "if_runtime": secret}),
            json!({"ref": agent.pane, "text": "x", "if_dialog": secret}),
            json!({"ref": agent.pane, "text": "x", secret: true}),
        ] {
            assert_ne!(stage.post("send", &body).status, 200, "{body}");
        }
        let keys: Vec<String> = secret.chars().map(String::from).collect();
        assert_done(&stage.post("send", &json!({"ref": agent.pane, "keys": keys})));
        assert_done(&stage.post("send", &json!({"ref": agent.pane, "keys": ["Enter"], "force_stale": true})));
    }
    let bytes = state_dir_bytes(&stage.world);
    assert!(
        contains(&bytes, "for it") && contains(&bytes, "[redacted:"),
        "something is written, and without its secrets"
    );
    for secret in SECRETS {
        assert!(!contains(&bytes, secret), "{secret} was written");
    }
    stop(&stage.world);
    let bytes = state_dir_bytes(&stage.world);
    assert!(SECRETS.iter().all(|secret| !contains(&bytes, secret)));
    start(&stage.world);
}

#[test]
fn texts_are_not_kept_where_that_is_not_wanted() {
    let stage = Stage::new("audit.store_text = false\ndaemon.log_level = \"trace\"");
    let agent = stage.agent("work");
    let text = "zanzibar-quetzal";
    let done = assert_done(&stage.post("send", &json!({"ref": agent.pane, "text": text, "request_ref": "one"})));
    assert_refused(
        &stage.post("send", &json!({"ref": agent.pane, "text": text, "if_state": "error"})),
        "E_STATE_CHANGED",
    );
    assert_refused(&stage.post("send", &json!({"ref": agent.pane, "text": format!("{text}\u{7}")})), "E_BAD_REQUEST");
    let keys: Vec<String> = text.chars().map(String::from).collect();
    assert_done(&stage.post("send", &json!({"ref": agent.pane, "keys": keys})));
    assert_refused(&stage.post("respond", &json!({"ref": agent.pane, "answer": {"text": text}})), "E_PRECONDITION");
    // It is still known again.
    let again = stage.post("send", &json!({"ref": agent.pane, "text": text, "request_ref": "one"}));
    assert_eq!((&assert_done(&again)["repeated"], &again.json()["action_id"]), (&json!(true), &done["action_id"]));
    let records = stage.audit();
    assert_eq!(records.len(), 5);
    assert!(records.iter().all(|record| record["text"].is_null()), "{records:?}");
    assert_eq!(records[0]["bytes"], text.len());
    assert!(!contains(&state_dir_bytes(&stage.world), text), "it was written");
    stop(&stage.world);
    assert!(!contains(&state_dir_bytes(&stage.world), text), "it was written");
    start(&stage.world);
}

#[test]
fn what_is_older_than_its_retention_is_forgotten_for_real() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    assert_done(&stage.send(&agent.pane, "kishimoto-marmalade"));
    assert!(contains(&state_dir_bytes(&stage.world), "kishimoto-marmalade"));
    stop(&stage.world);
    let database = stage.world.state_dir().join("state.db");
    let old = 60 * 24 * 3600 * 1_000_000_i64;
    let age = Connection::open(&database).expect("a database");
    age.execute("UPDATE actions SET at = at - ?1", [old]).expect("aged");
    age.execute("UPDATE action_snapshots SET expires_at = expires_at - ?1", [old]).expect("aged");
    drop(age);
    start(&stage.world);
    wait_until("the purge", SOON, || {
        stage.audit().is_empty() && !contains(&state_dir_bytes(&stage.world), "kishimoto-marmalade")
    });
    let left = Connection::open(&database).expect("a database");
    let count: u32 = left.query_row("SELECT count(*) FROM action_snapshots", [], |row| row.get(0)).expect("counted");
    assert_eq!(count, 0);
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let database = Connection::open(stage.world.state_dir().join("state.db")).expect("a database");
    let full = "CREATE TRIGGER full BEFORE INSERT ON actions BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END";
    database.execute_batch(full).expect("from now on the disk is full");
    let bodies = [
        ("send", json!({"ref": agent.pane, "text": "not this"})),
        ("kill", json!({"ref": agent.pane})),
        ("kill", json!({"ref": agent.pane, "signal": "KILL"})),
    ];
    for (action, body) in &bodies {
        let answer = stage.post(action, body);
        assert_refused(&answer, "E_NOT_STORED");
        assert_eq!(answer.status, 503);
    }
    // Whoever only looks is served.
    assert_done(&stage.post("view-output", &json!({"ref": agent.pane})));
    stage.snapshot(&agent.pane);
    assert!(list(&stage.world).to_string().contains(&agent.pane) && stage.audit().is_empty());
    agent.assert_untouched();
    database.execute_batch("DROP TRIGGER full").expect("there is room again");
    assert_done(&stage.send(&agent.pane, "but this"));
    assert_eq!(agent.submitted(), ["but this"]);
}
