//! The audit log: every action is recorded without its secrets, and refused if the record cannot be stored.

use std::fs;

use agtmux_testkit::action_fixture::{ActionFixture, assert_done, assert_refused};
use agtmux_testkit::agtmux::{SOON, agtmux, list, start, stop};
use agtmux_testkit::http;
use agtmux_testkit::{TestWorld, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};

/// Strings in the format of secrets; none of them is a real secret.
const SECRETS: [&str; 3] = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGhIjKlMnOpQrStUv-AAAAAAAA",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "AKIAIOSFODNN7EXAMPLE",
];

/// The bytes of all files in the state directory.
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
fn the_audit_log_records_caller_target_and_result() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let sent = assert_done(&fixture.post("send", &json!({"ref": agent.pane, "text": "noted", "client": "a test"})));
    assert_refused(&fixture.post("send", &json!({"ref": "missing", "text": "noted"})), "E_REF_NOT_FOUND");
    assert_refused(&fixture.post("kill", &json!({"ref": agent.pane, "if_state": "error"})), "E_STATE_CHANGED");
    assert_refused(&fixture.post("respond", &json!({"ref": agent.pane, "answer": "approve"})), "E_PRECONDITION");
    let shown = agtmux(&fixture.world, &["send", &agent.pane, "--key", "C-u", "--key", "x", "--key", "y"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let records = fixture.audit();
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
    let program = fs::read_to_string("/proc/self/comm").expect("the kernel knows this process");
    assert_eq!(caller["program"], program.trim_end(), "{caller}");
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
    let one = fixture.get(&format!("/v1/actions/{}", first["action_id"].as_str().expect("an id")));
    assert_eq!(&one, first);
    assert_eq!(fixture.get("/v1/actions/nothing")["code"], "E_NOT_FOUND");
    let since = first["finished_at"].as_str().expect("a time").to_owned();
    let later = fixture.get(&format!("/v1/audit?since={since}&limit=2"));
    assert_eq!(later["items"].as_array().map(Vec::len), Some(2), "the two newest records: {later}");
    assert_eq!(fixture.get("/v1/audit?sinse=1")["code"], "E_BAD_REQUEST");
}

#[test]
fn invalid_requests_are_audited_and_truncated_fields_are_marked() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
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
        assert_refused(&fixture.post(action, body), "E_BAD_REQUEST");
    }
    let records = fixture.audit();
    let seen =
        |r: &Value| [&r["kind"], &r["status"], &r["code"], &r["ref"]].map(|v| v.as_str().unwrap_or("-").to_owned());
    let expected = bad.map(|(action, _, name)| [action, "refused", "E_BAD_REQUEST", name].map(str::to_owned));
    assert_eq!(records.iter().map(seen).collect::<Vec<_>>(), expected);
    for record in &records {
        assert_eq!(record["caller"]["pid"], json!(std::process::id()), "{record}");
        assert!(record["message"].is_string() && record["finished_at"].is_string(), "{record}");
    }
    assert_eq!(records[0]["caller"]["client"], json!(format!("{}… [cut]", "c".repeat(64))));
    // A secret across the truncation point is redacted, and the truncated text is marked.
    let long = format!("{} {}", "é".repeat(230), format!("{} ", SECRETS[1]).repeat(40));
    assert_refused(&fixture.post("attach", &json!({"ref": long})), "E_REF_INVALID");
    let record = fixture.audit().pop().expect("written down");
    let name = record["ref"].as_str().expect("a text");
    assert!(name.ends_with("… [cut]") && !name.contains("ghp_"), "{name}");
}

/// The requests mark every view as a repeated one, with `again`. The first view of each pane is audited nevertheless.
#[test]
fn view_output_is_audited_once_per_pane() {
    let fixture = ActionFixture::new("");
    let (agent, other) = (fixture.agent("work"), fixture.agent("other"));
    for reference in [&agent.pane, &agent.runtime, &agent.pane, &other.pane] {
        assert_done(&fixture.post("view-output", &json!({"ref": reference, "again": true})));
    }
    let viewed: Vec<Value> = fixture.audit().iter().map(|record| record["ref"].clone()).collect();
    assert_eq!(viewed, [json!(agent.pane), json!(other.pane)]);
}

/// If the agent's own hook confirms a send, the audit record contains the id of the hook event.
#[test]
fn the_event_that_confirms_a_send_is_recorded() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.draw_scene("stuck");
    let event = json!({
        "event_type": "UserPromptSubmit", "source": "hook", "agent_type": "claude", "dedupe_key": "one",
        "runtime_id": agent.runtime.trim_start_matches("runtime:"),
        "raw_payload": {"session_id": "s", "prompt": "tell me", "hook_event_name": "UserPromptSubmit"},
    });
    let done = std::thread::scope(|scope| {
        let sending = scope.spawn(|| fixture.send(&agent.pane, "tell me").json());
        wait_until("the text", SOON, || agent.input_so_far().ends_with(b"\r"));
        let body = event.to_string();
        let mut request = http::request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len()));
        request.extend(body.as_bytes());
        let answer = http::send(&fixture.socket(), &request).expect("an answer");
        assert_eq!(answer.status, 202, "{}", answer.json());
        (sending.join().expect("answered"), answer.json())
    });
    assert_eq!((&done.0["verified"], &done.0["by"]), (&json!("confirmed"), &json!("event")), "{done:?}");
    assert_eq!(done.0["event_ids"], json!([done.1["event_id"]]));
    assert_eq!(fixture.audit()[0]["event_ids"], done.0["event_ids"]);
}

#[test]
fn secrets_are_never_written_to_the_state_directory() {
    let fixture = ActionFixture::new("daemon.log_level = \"trace\"");
    let agent = fixture.agent("work");
    for secret in SECRETS {
        assert_done(&fixture.send(&agent.pane, &format!("use {secret} for it")));
        // These requests contain the secret in every other field that a caller can set.
        for body in [
            json!({"ref": secret, "text": secret}),
            json!({"ref": agent.pane, "text": format!("{secret}\u{1b}")}),
            json!({"ref": agent.pane, "keys": [secret]}),
            json!({"ref": agent.pane, "text": "x", "if_runtime": secret}),
            json!({"ref": agent.pane, "text": "x", "if_dialog": secret}),
            json!({"ref": agent.pane, "text": "x", secret: true}),
        ] {
            assert_ne!(fixture.post("send", &body).status, 200, "{body}");
        }
        let keys: Vec<String> = secret.chars().map(String::from).collect();
        assert_done(&fixture.post("send", &json!({"ref": agent.pane, "keys": keys})));
        assert_done(&fixture.post("send", &json!({"ref": agent.pane, "keys": ["Enter"], "force_stale": true})));
    }
    let bytes = state_dir_bytes(&fixture.world);
    assert!(
        contains(&bytes, "for it") && contains(&bytes, "[redacted:"),
        "the text is stored and its secrets are redacted"
    );
    for secret in SECRETS {
        assert!(!contains(&bytes, secret), "{secret} is in the state directory");
    }
    stop(&fixture.world);
    let bytes = state_dir_bytes(&fixture.world);
    assert!(SECRETS.iter().all(|secret| !contains(&bytes, secret)));
    start(&fixture.world);
}

#[test]
fn texts_are_not_stored_with_store_text_off() {
    let fixture = ActionFixture::new("audit.store_text = false\ndaemon.log_level = \"trace\"");
    let agent = fixture.agent("work");
    let text = "zanzibar-quetzal";
    let done = assert_done(&fixture.post("send", &json!({"ref": agent.pane, "text": text, "request_ref": "one"})));
    assert_refused(
        &fixture.post("send", &json!({"ref": agent.pane, "text": text, "if_state": "error"})),
        "E_STATE_CHANGED",
    );
    assert_refused(&fixture.post("send", &json!({"ref": agent.pane, "text": format!("{text}\u{7}")})), "E_BAD_REQUEST");
    let keys: Vec<String> = text.chars().map(String::from).collect();
    assert_done(&fixture.post("send", &json!({"ref": agent.pane, "keys": keys})));
    assert_refused(&fixture.post("respond", &json!({"ref": agent.pane, "answer": {"text": text}})), "E_PRECONDITION");
    // The repeated request is still recognised.
    let again = fixture.post("send", &json!({"ref": agent.pane, "text": text, "request_ref": "one"}));
    assert_eq!((&assert_done(&again)["repeated"], &again.json()["action_id"]), (&json!(true), &done["action_id"]));
    let records = fixture.audit();
    assert_eq!(records.len(), 5);
    assert!(records.iter().all(|record| record["text"].is_null()), "{records:?}");
    assert_eq!(records[0]["bytes"], text.len());
    assert!(!contains(&state_dir_bytes(&fixture.world), text), "the text is in the state directory");
    stop(&fixture.world);
    assert!(!contains(&state_dir_bytes(&fixture.world), text), "the text is in the state directory");
    start(&fixture.world);
}

#[test]
fn expired_audit_records_are_erased_from_disk() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    assert_done(&fixture.send(&agent.pane, "kishimoto-marmalade"));
    assert!(contains(&state_dir_bytes(&fixture.world), "kishimoto-marmalade"));
    stop(&fixture.world);
    let database = fixture.world.state_dir().join("state.db");
    let old = 60 * 24 * 3600 * 1_000_000_i64;
    let age = Connection::open(&database).expect("a database");
    age.execute("UPDATE actions SET at = at - ?1", [old]).expect("aged");
    age.execute("UPDATE action_snapshots SET expires_at = expires_at - ?1", [old]).expect("aged");
    drop(age);
    start(&fixture.world);
    wait_until("the purge", SOON, || {
        fixture.audit().is_empty() && !contains(&state_dir_bytes(&fixture.world), "kishimoto-marmalade")
    });
    let left = Connection::open(&database).expect("a database");
    let count: u32 = left.query_row("SELECT count(*) FROM action_snapshots", [], |row| row.get(0)).expect("counted");
    assert_eq!(count, 0);
}

#[test]
fn actions_are_refused_if_the_audit_record_cannot_be_stored() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let database = Connection::open(fixture.world.state_dir().join("state.db")).expect("a database");
    let full = "CREATE TRIGGER full BEFORE INSERT ON actions BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END";
    database.execute_batch(full).expect("from now on the disk is full");
    let bodies = [
        ("send", json!({"ref": agent.pane, "text": "not this"})),
        ("kill", json!({"ref": agent.pane})),
        ("kill", json!({"ref": agent.pane, "signal": "KILL"})),
    ];
    for (action, body) in &bodies {
        let answer = fixture.post(action, body);
        assert_refused(&answer, "E_NOT_STORED");
        assert_eq!(answer.status, 503);
    }
    // Read-only actions still work.
    assert_done(&fixture.post("view-output", &json!({"ref": agent.pane})));
    fixture.snapshot(&agent.pane);
    assert!(list(&fixture.world).to_string().contains(&agent.pane) && fixture.audit().is_empty());
    agent.assert_no_input();
    database.execute_batch("DROP TRIGGER full").expect("the trigger is dropped");
    assert_done(&fixture.send(&agent.pane, "but this"));
    assert_eq!(agent.submitted_texts(), ["but this"]);
}
