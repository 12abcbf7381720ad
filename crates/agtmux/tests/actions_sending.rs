//! Texts arrive whole, once and in one piece, whoever else sends, leaves or falls over meanwhile.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agtmux::{SOON, agtmux, kill, pid, soak, start};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};
use stage::{Agent, Stage, assert_done, assert_refused, merged};

#[test]
fn many_who_send_to_the_same_panes_do_not_get_in_each_others_way() {
    let (clients, texts) = (8, if soak() { 50 } else { 6 });
    let stage = Stage::new("");
    let agents: Vec<Agent> = ["a", "b", "c", "d"].iter().map(|name| stage.agent(name)).collect();
    let text = |client: usize, n: usize| format!("client {client}, text {n};\n{}", "word ".repeat(n * 37 % 90));
    thread::scope(|scope| {
        for client in 0..clients {
            let (stage, agents) = (&stage, &agents);
            scope.spawn(move || {
                for n in 0..texts {
                    let agent = &agents[(client + n) % agents.len()];
                    let done = assert_done(&stage.send(&agent.runtime, &text(client, n)));
                    assert_eq!(done["verified"], "confirmed", "{done}");
                }
            });
        }
    });
    let arrived: Vec<String> = agents.iter().flat_map(Agent::submitted).collect();
    let sent: BTreeSet<String> = (0..clients).flat_map(|c| (0..texts).map(move |n| text(c, n))).collect();
    assert_eq!(arrived.len(), clients * texts, "lost or twice");
    assert_eq!(arrived.into_iter().collect::<BTreeSet<_>>(), sent);
}

#[test]
fn a_request_that_is_repeated_is_done_once() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let body = json!({"ref": agent.pane, "text": "only once", "request_ref": "first"});
    let mut answers: Vec<Value> = thread::scope(|scope| {
        let ask = || assert_done(&stage.post("send", &body));
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|one| one.join().expect("answered")).collect()
    });
    answers.push(assert_done(&stage.post("send", &merged(&body, &json!({"client": "somebody else"})))));
    assert_eq!(answers.iter().filter(|answer| answer["repeated"] == true).count(), 4, "{answers:?}");
    let same = |answer: &Value| (answer["action_id"].clone(), answer["verified"].clone(), answer["bytes"].clone());
    assert!(answers.iter().all(|answer| same(answer) == same(&answers[0])), "{answers:?}");
    for other in [json!({"text": "something else"}), json!({"no_enter": true}), json!({"ref": "claude"})] {
        assert_refused(&stage.post("send", &merged(&body, &other)), "E_IDEMPOTENCY_CONFLICT");
    }
    assert_refused(&stage.post("kill", &json!({"ref": agent.pane, "request_ref": "first"})), "E_IDEMPOTENCY_CONFLICT");
    assert_eq!(agent.submitted(), ["only once"]);

    // Nothing was done when it was refused: it may be tried again.
    let body = json!({"ref": agent.pane, "text": "tried again", "request_ref": "second"});
    assert_refused(&stage.post("send", &merged(&body, &json!({"if_state": "error"}))), "E_STATE_CHANGED");
    assert_eq!(assert_done(&stage.post("send", &body))["repeated"], false);
    for bad in ["", "new\nline", &"x".repeat(201)] {
        assert_refused(&stage.post("send", &merged(&body, &json!({"request_ref": bad}))), "E_BAD_REQUEST");
    }
    assert_eq!(agent.submitted(), ["only once", "tried again"]);
}

/// It does not show what was typed, so that Enter waits: that is when the daemon is killed.
#[test]
fn what_was_begun_when_the_daemon_was_killed_is_not_known_to_be_done() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    agent.draws("deaf");
    let body = json!({"ref": agent.pane, "text": "half way", "request_ref": "cut short"});
    thread::scope(|scope| {
        scope.spawn(|| {
            // No answer is all that can be expected.
            assert!(stage.try_post("send", &body).is_none());
        });
        wait_until("the text to be typed", SOON, || !agent.read().is_empty());
        kill(pid(&stage.world));
    });
    start(&stage.world);
    agent.draws("idle");
    let begun = wait_for("the audit log", SOON, || stage.audit().pop());
    assert_eq!((&begun["status"], &begun["request_ref"]), (&json!("begun"), &json!("cut short")), "{begun}");
    assert_eq!((&begun["finished_at"], &begun["result"]), (&Value::Null, &Value::Null));
    let error = assert_refused(&stage.post("send", &body), "E_PRECONDITION");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("is not known")), "{error}");
    assert_eq!(agent.all_read(), b"\x1b[200~half way\x1b[201~");
}

/// Whoever was told that it was done finds it done once; whoever was not told may ask again and gets it once at the most.
#[test]
fn a_daemon_that_is_killed_among_senders_loses_and_repeats_nothing() {
    let stage = Stage::new("");
    // A server without a pane ends, and takes its time.
    stage.server.new_session("keeper", "cat");
    for round in 0..if soak() { 20 } else { 1 } {
        let agents: Vec<Agent> = (0..4).map(|n| stage.agent(&format!("round-{round}-{n}"))).collect();
        let body = |client: usize, n: usize| {
            let text = format!("round {round} client {client} text {n}");
            json!({"ref": agents[client].runtime, "text": text, "request_ref": text})
        };
        let answered = AtomicUsize::new(0);
        let told: Vec<(usize, usize)> = thread::scope(|scope| {
            let (stage, answered, body) = (&stage, &answered, &body);
            let send = move |client: usize| {
                let mut told = Vec::new();
                while let Some(answer) = stage.try_post("send", &body(client, told.len())) {
                    assert_done(&answer);
                    told.push((client, told.len()));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                told
            };
            let clients: Vec<_> = (0..4).map(|client| scope.spawn(move || send(client))).collect();
            wait_until("some answers", SOON, || answered.load(Ordering::Relaxed) >= 6 + round % 5);
            kill(pid(&stage.world));
            clients.into_iter().flat_map(|client| client.join().expect("sent")).collect()
        });
        start(&stage.world);
        for (client, agent) in agents.iter().enumerate() {
            stage.becomes(agent, "idle");
            let count = told.iter().filter(|(teller, _)| *teller == client).count();
            // The one without an answer, under the same name.
            let again = stage.post("send", &body(client, count));
            let read = String::from_utf8(agent.all_read()).expect("text");
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
fn what_waited_until_it_was_too_late_is_not_typed() {
    let stage = Stage::new("tmux_bridge.sequential_send_delay_ms = 400");
    let agent = stage.agent("work");
    thread::scope(|scope| {
        let first = scope.spawn(|| stage.post("send", &json!({"ref": agent.pane, "keys": vec!["a"; 6]})));
        wait_until("the first key", SOON, || !agent.read().is_empty());
        let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
        let late = json!({"ref": agent.pane, "keys": ["x"], "not_after": soon.to_string()});
        let error = assert_refused(&stage.post("send", &late), "E_PRECONDITION");
        assert!(error["message"].as_str().is_some_and(|why| why.contains("too late")), "{error}");
        assert_done(&first.join().expect("answered"));
    });
    assert_eq!(agent.all_read(), b"aaaaaa");
}

#[test]
fn a_caller_who_leaves_does_not_leave_half_a_text_behind() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let body = json!({"ref": agent.pane, "text": "nobody waits for this"}).to_string();
    let head = http::request("POST", "/v1/actions/send", &format!("content-length: {}\r\n", body.len()));
    for part in [&body.as_bytes()[..body.len() - 1], body.as_bytes()] {
        let mut connection = http::connect(&stage.socket());
        connection.write_all(&[&head, part].concat()).expect("the daemon reads");
        drop(connection);
    }
    wait_until("the text", SOON, || agent.read().ends_with(b"\r"));
    wait_until("the end of it", SOON, || stage.audit().iter().any(|record| record["status"] == "done"));
    assert_eq!(agent.submitted(), ["nobody waits for this"], "the one that was cut off counts for nothing");
    assert_eq!(stage.audit().len(), 1);
}

#[test]
fn what_a_terminal_would_obey_is_refused_and_line_ends_are_made_ours() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let bad = ["", "end\x1b[201~rm -rf", "a\rb", "nul\0", "\u{9b}201~", "bell\x07", "\x7f", "a\u{85}b"];
    for text in bad {
        assert_refused(&stage.send(&agent.pane, text), "E_BAD_REQUEST");
    }
    for keys in [json!(["Enter", "kill-server"]), json!(["a;b"]), json!(["\n"]), json!([""]), json!(["-X"])] {
        assert_refused(&stage.post("send", &json!({"ref": agent.pane, "keys": keys})), "E_BAD_REQUEST");
    }
    assert_eq!(stage.send(&agent.pane, &"x".repeat((1 << 20) + 1)).status, 413);
    agent.assert_untouched();
    assert!(stage.audit().iter().all(|record| record["status"] == "refused"));
    assert_eq!(stage.audit().len(), bad.len() + 5 + 1, "each is written down");
    assert_done(&stage.send(&agent.pane, "one\r\ntwo\r\n\tthree \u{202e}日本語"));
    assert_eq!(agent.submitted(), ["one\ntwo\n\tthree \u{202e}日本語"]);
}

/// It has no hooks, so that nobody but its screen tells that it works.
#[test]
fn whoever_waits_after_sending_does_not_find_the_rest_from_before() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    for round in 0..4 {
        stage.show(&agent, "works", "idle");
        let sent = assert_done(&stage.send(&agent.pane, "work"));
        assert_eq!(sent["verified"], "confirmed", "{sent}");
        let rests = agtmux(&stage.world, &["wait", &agent.pane, "--for", "idle,completed", "--timeout", "0s"]);
        assert_eq!(rests.code, Some(1), "round {round}: {rests:?}");
        stage.becomes(&agent, "running");
    }
}

#[test]
fn what_is_too_much_or_does_not_fit_is_said_before_anything_is_asked() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    // The most is in the middle of a character.
    let file = stage.world.home().join("much");
    std::fs::write(&file, "é".repeat(600_000)).expect("writable");
    let much = agtmux(&stage.world, &["send", &agent.pane, "--file", file.to_str().expect("text")]);
    assert!(much.code == Some(2) && much.stderr.contains("more than 1048576 bytes"), "{}", much.stderr);
    let keys = agtmux(&stage.world, &["send", &agent.pane, "--key", "x", "--no-enter"]);
    assert_eq!(keys.code, Some(2), "{}", keys.stderr);
    agent.assert_untouched();
}
