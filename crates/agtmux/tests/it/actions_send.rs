//! Each sent text arrives whole, once and not mixed with other texts, despite concurrent senders, disconnects and
//! daemon kills.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, assert_done, assert_refused, merge_json};
use agtmux_testkit::agtmux::{SOON, agtmux, kill, pid, soak, start};
use agtmux_testkit::http;
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

#[test]
fn concurrent_sends_arrive_whole_and_once() {
    let (clients, texts) = (8, if soak() { 50 } else { 6 });
    let fixture = ActionFixture::new("");
    let agents: Vec<RecordingAgent> = ["a", "b", "c", "d"].iter().map(|name| fixture.agent(name)).collect();
    let text = |client: usize, n: usize| format!("client {client}, text {n};\n{}", "word ".repeat(n * 37 % 90));
    thread::scope(|scope| {
        for client in 0..clients {
            let (fixture, agents) = (&fixture, &agents);
            scope.spawn(move || {
                for n in 0..texts {
                    let agent = &agents[(client + n) % agents.len()];
                    let done = assert_done(&fixture.send(&agent.runtime, &text(client, n)));
                    assert_eq!(done["verified"], "confirmed", "{done}");
                }
            });
        }
    });
    let arrived: Vec<String> = agents.iter().flat_map(|agent| agent.submitted_texts()).collect();
    let sent: BTreeSet<String> = (0..clients).flat_map(|c| (0..texts).map(move |n| text(c, n))).collect();
    assert_eq!(arrived.len(), clients * texts, "a text was lost or sent twice");
    assert_eq!(arrived.into_iter().collect::<BTreeSet<_>>(), sent);
}

#[test]
fn a_repeated_request_ref_runs_once() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let body = json!({"ref": agent.pane, "text": "only once", "request_ref": "first"});
    let mut answers: Vec<Value> = thread::scope(|scope| {
        let ask = || assert_done(&fixture.post("send", &body));
        let requests: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        requests.into_iter().map(|one| one.join().expect("answered")).collect()
    });
    answers.push(assert_done(&fixture.post("send", &merge_json(&body, &json!({"client": "another client"})))));
    assert_eq!(answers.iter().filter(|answer| answer["repeated"] == true).count(), 4, "{answers:?}");
    let same = |answer: &Value| (answer["action_id"].clone(), answer["verified"].clone(), answer["bytes"].clone());
    assert!(answers.iter().all(|answer| same(answer) == same(&answers[0])), "{answers:?}");
    for other in [json!({"text": "something else"}), json!({"no_enter": true}), json!({"ref": "claude"})] {
        assert_refused(&fixture.post("send", &merge_json(&body, &other)), "E_IDEMPOTENCY_CONFLICT");
    }
    assert_refused(
        &fixture.post("kill", &json!({"ref": agent.pane, "request_ref": "first"})),
        "E_IDEMPOTENCY_CONFLICT",
    );
    assert_eq!(agent.submitted_texts(), ["only once"]);

    // A refused request did nothing, so its request_ref can be reused.
    let body = json!({"ref": agent.pane, "text": "tried again", "request_ref": "second"});
    assert_refused(&fixture.post("send", &merge_json(&body, &json!({"if_state": "error"}))), "E_STATE_CHANGED");
    assert_eq!(assert_done(&fixture.post("send", &body))["repeated"], false);
    for bad in ["", "new\nline", &"x".repeat(201)] {
        assert_refused(&fixture.post("send", &merge_json(&body, &json!({"request_ref": bad}))), "E_BAD_REQUEST");
    }
    assert_eq!(agent.submitted_texts(), ["only once", "tried again"]);
}

/// The agent does not show the text, so the daemon waits before Enter. The test kills the daemon during this wait.
#[test]
fn a_send_interrupted_by_a_daemon_kill_is_reported_as_unknown() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.draw_scene("deaf");
    let body = json!({"ref": agent.pane, "text": "half way", "request_ref": "cut short"});
    thread::scope(|scope| {
        scope.spawn(|| {
            // The daemon is killed before it answers.
            assert!(fixture.try_post("send", &body).is_none());
        });
        wait_until("the text to be typed", SOON, || !agent.input_so_far().is_empty());
        kill(pid(&fixture.world));
    });
    start(&fixture.world);
    agent.draw_scene("idle");
    let begun = wait_for("the audit log", SOON, || fixture.audit().pop());
    assert_eq!((&begun["status"], &begun["request_ref"]), (&json!("begun"), &json!("cut short")), "{begun}");
    assert_eq!((&begun["finished_at"], &begun["result"]), (&Value::Null, &Value::Null));
    let error = assert_refused(&fixture.post("send", &body), "E_PRECONDITION");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("outcome is unknown")), "{error}");
    assert_eq!(agent.complete_input(), b"\x1b[200~half way\x1b[201~");
}

/// An acknowledged text is submitted once. An unacknowledged text can be retried with the same request_ref and is
/// typed at most once.
#[test]
fn a_daemon_kill_during_sends_loses_and_repeats_nothing() {
    let fixture = ActionFixture::new("");
    // Keeps the tmux server alive between rounds.
    fixture.server.new_session("keeper", "cat");
    for round in 0..if soak() { 20 } else { 1 } {
        let agents: Vec<RecordingAgent> = (0..4).map(|n| fixture.agent(&format!("round-{round}-{n}"))).collect();
        let body = |client: usize, n: usize| {
            let text = format!("round {round} client {client} text {n}");
            json!({"ref": agents[client].runtime, "text": text, "request_ref": text})
        };
        let answered = AtomicUsize::new(0);
        let acknowledged: Vec<(usize, usize)> = thread::scope(|scope| {
            let (fixture, answered, body) = (&fixture, &answered, &body);
            let send = move |client: usize| {
                let mut acknowledged = Vec::new();
                while let Some(answer) = fixture.try_post("send", &body(client, acknowledged.len())) {
                    assert_done(&answer);
                    acknowledged.push((client, acknowledged.len()));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                acknowledged
            };
            let clients: Vec<_> = (0..4).map(|client| scope.spawn(move || send(client))).collect();
            wait_until("some answers", SOON, || answered.load(Ordering::Relaxed) >= 6 + round % 5);
            kill(pid(&fixture.world));
            clients.into_iter().flat_map(|client| client.join().expect("sent")).collect()
        });
        start(&fixture.world);
        for (client, agent) in agents.iter().enumerate() {
            fixture.wait_for_state(agent, "idle");
            let count = acknowledged.iter().filter(|(sender, _)| *sender == client).count();
            // Retry the unacknowledged text with the same request_ref.
            let again = fixture.post("send", &body(client, count));
            let read = String::from_utf8(agent.complete_input()).expect("text");
            for n in 0..=count {
                let text = body(client, n)["text"].as_str().expect("a text").to_owned();
                let times = read.matches(&format!("\x1b[200~{text}\x1b[201~")).count();
                let submitted = read.matches(&format!("\x1b[200~{text}\x1b[201~\r")).count();
                assert!(times <= 1, "{text} was typed {times} times");
                let is_done = n < count || again.status == 200;
                assert!(!is_done || submitted == 1, "{text}: {} in {read:?}", again.json());
            }
            agent.server.run(&["kill-pane", "-t", &agent.pane]);
        }
    }
}

#[test]
fn a_send_past_its_not_after_time_is_refused() {
    let fixture = ActionFixture::new("tmux_bridge.sequential_send_delay_ms = 400");
    let agent = fixture.agent("work");
    thread::scope(|scope| {
        let first = scope.spawn(|| fixture.post("send", &json!({"ref": agent.pane, "keys": vec!["a"; 6]})));
        wait_until("the first key", SOON, || !agent.input_so_far().is_empty());
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
        let late = json!({"ref": agent.pane, "keys": ["x"], "not_after": soon.to_string()});
        let error = assert_refused(&fixture.post("send", &late), "E_PRECONDITION");
        assert!(error["message"].as_str().is_some_and(|why| why.contains("after its deadline")), "{error}");
        assert_done(&first.join().expect("answered"));
    });
    assert_eq!(agent.complete_input(), b"aaaaaa");
}

#[test]
fn a_send_completes_after_the_caller_disconnects() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let body = json!({"ref": agent.pane, "text": "no caller waits for this"}).to_string();
    let head = http::request("POST", "/v1/actions/send", &format!("content-length: {}\r\n", body.len()));
    for part in [&body.as_bytes()[..body.len() - 1], body.as_bytes()] {
        let mut connection = http::connect(&fixture.socket());
        connection.write_all(&[&head, part].concat()).expect("the daemon reads");
        drop(connection);
    }
    wait_until("the text", SOON, || agent.input_so_far().ends_with(b"\r"));
    wait_until("the audit record", SOON, || fixture.audit().iter().any(|record| record["status"] == "done"));
    assert_eq!(agent.submitted_texts(), ["no caller waits for this"], "the incomplete request was ignored");
    assert_eq!(fixture.audit().len(), 1);
}

#[test]
fn control_characters_are_refused_and_line_ends_normalized() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let bad = ["", "end\x1b[201~rm -rf", "a\rb", "nul\0", "\u{9b}201~", "bell\x07", "\x7f", "a\u{85}b"];
    for text in bad {
        assert_refused(&fixture.send(&agent.pane, text), "E_BAD_REQUEST");
    }
    for keys in [json!(["Enter", "kill-server"]), json!(["a;b"]), json!(["\n"]), json!([""]), json!(["-X"])] {
        assert_refused(&fixture.post("send", &json!({"ref": agent.pane, "keys": keys})), "E_BAD_REQUEST");
    }
    assert_eq!(fixture.send(&agent.pane, &"x".repeat((1 << 20) + 1)).status, 413);
    agent.assert_no_input();
    assert!(fixture.audit().iter().all(|record| record["status"] == "refused"));
    assert_eq!(fixture.audit().len(), bad.len() + 5 + 1, "every refusal is audited");
    assert_done(&fixture.send(&agent.pane, "one\r\ntwo\r\n\tthree \u{202e}日本語"));
    assert_eq!(agent.submitted_texts(), ["one\ntwo\n\tthree \u{202e}日本語"]);
}

/// The agent has no hooks, so only its screen shows that it is working.
#[test]
fn wait_after_send_ignores_the_idle_state_before_it() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    for round in 0..4 {
        fixture.show_scene(&agent, "works", "idle");
        let sent = assert_done(&fixture.send(&agent.pane, "work"));
        assert_eq!(sent["verified"], "confirmed", "{sent}");
        let waited = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "idle,completed", "--timeout", "0s"]);
        assert_eq!(waited.code, Some(1), "round {round}: {waited:?}");
        fixture.wait_for_state(&agent, "running");
    }
}

#[test]
fn the_cli_rejects_oversized_texts_and_conflicting_options() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    // The size limit falls inside a two-byte character.
    let file = fixture.world.home().join("oversized");
    std::fs::write(&file, "é".repeat(600_000)).expect("writable");
    let oversized = agtmux(&fixture.world, &["send", &agent.pane, "--file", file.to_str().expect("text")]);
    assert!(
        oversized.code == Some(2) && oversized.stderr.contains("the limit is 1048576 bytes"),
        "{}",
        oversized.stderr
    );
    let keys = agtmux(&fixture.world, &["send", &agent.pane, "--key", "x", "--no-enter"]);
    assert_eq!(keys.code, Some(2), "{}", keys.stderr);
    agent.assert_no_input();
}
