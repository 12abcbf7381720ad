//! Guards of actions: an action runs only on the runtime and state that the caller saw. Each test of a refusal
//! checks that nothing was typed.

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, assert_done, assert_refused, merge_json};
use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::http;
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

const TEXT: &str = "hello, this is for you alone";

/// Posts every action that changes something, guarded by this snapshot.
fn post_all_actions(
    fixture: &ActionFixture,
    snapshot: &Value,
    reference: &str,
    more: &Value,
) -> Vec<http::HttpResponse> {
    let bodies = [
        ("send", json!({"text": TEXT})),
        ("send", json!({"keys": ["C-u"]})),
        ("kill", json!({"signal": "INT"})),
        ("kill", json!({"signal": "KILL"})),
        ("respond", json!({"answer": "approve"})),
    ];
    let ask = |(action, body): (&str, Value)| {
        fixture.post(action, &ActionFixture::with_snapshot(snapshot, reference, &merge_json(&body, more)))
    };
    bodies.into_iter().map(ask).collect()
}

#[test]
fn actions_on_a_snapshot_are_refused_after_the_pane_is_respawned() {
    let fixture = ActionFixture::new("");
    let old = fixture.agent("work");
    let seen = fixture.snapshot(&old.runtime);
    let dir = FakeAgent::fresh_dir(&fixture.world);
    fixture.server.run(&["respawn-pane", "-k", "-t", &old.pane, &FakeAgent::command(&fixture.world, &dir)]);
    let listed =
        || fixture.item(&old).map(|item| format!("runtime:{}", item["runtime_id"].as_str().unwrap_or_default()));
    wait_until("the old runtime to be gone", SOON, || listed().as_ref() != Some(&old.runtime));
    let new = fixture.wait_for_idle_agent(&fixture.server, old.pane.clone(), dir);
    assert_ne!(old.runtime, new.runtime);
    for answer in post_all_actions(&fixture, &seen, &new.pane, &json!({})) {
        assert_refused(&answer, "E_RUNTIME_STALE");
    }
    // force_stale does not skip the check of the runtime.
    for answer in post_all_actions(&fixture, &seen, &new.pane, &json!({"force_stale": true})) {
        assert_refused(&answer, "E_RUNTIME_STALE");
    }
    assert_refused(&fixture.send(&old.runtime, TEXT), "E_REF_NOT_FOUND");
    let only_old = json!({"ref": new.pane, "text": TEXT, "if_runtime": old.runtime});
    assert_refused(&fixture.post("send", &only_old), "E_RUNTIME_STALE");
    new.assert_no_input();
    assert_done(&fixture.post("send", &merge_json(&only_old, &json!({"if_runtime": new.runtime}))));
    assert_eq!(new.submitted_texts(), [TEXT]);
}

/// A pane reference names the window, so it breaks when the pane moves. The runtime and its snapshot stay valid.
#[test]
fn a_moved_pane_keeps_its_agent_but_not_its_old_reference() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.server.run(&["split-window", "-d", "-t", "=work:", "cat"]);
    let item = fixture.item(&agent).expect("listed");
    let place = format!("pane:host/work/{}/{}", item["identity"]["window_id"].as_str().expect("an id"), agent.pane);
    let seen = fixture.snapshot(&place);
    fixture.server.run(&["break-pane", "-d", "-s", &agent.pane]);
    wait_for("the move to be seen", SOON, || {
        let now = fixture.item(&agent).unwrap_or_default();
        if now["identity"]["window_id"] == item["identity"]["window_id"] { Err(now) } else { Ok(()) }
    });
    assert_refused(&fixture.send(&place, TEXT), "E_REF_NOT_FOUND");
    agent.assert_no_input();
    assert_done(&fixture.post("send", &ActionFixture::with_snapshot(&seen, &agent.runtime, &json!({"text": "one"}))));
    assert_done(&fixture.send(&agent.pane, "two"));
    assert_eq!(agent.submitted_texts(), ["one", "two"]);
}

#[test]
fn actions_on_a_snapshot_are_refused_after_the_server_restarts() {
    let fixture = ActionFixture::new("");
    let old = fixture.agent("work");
    let seen = fixture.snapshot(&old.pane);
    fixture.server.kill_server();
    let new = fixture.agent("work");
    assert_eq!((&old.pane, old.runtime == new.runtime), (&new.pane, false));
    for more in [json!({}), json!({"force_stale": true})] {
        for answer in post_all_actions(&fixture, &seen, &new.pane, &more) {
            assert_refused(&answer, "E_RUNTIME_STALE");
        }
    }
    assert_refused(&fixture.send(&old.runtime, TEXT), "E_REF_NOT_FOUND");
    new.assert_no_input();
}

#[test]
fn actions_are_refused_after_a_state_change_unless_forced() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seen = fixture.snapshot(&agent.pane);
    let guarded = |more: Value| fixture.post("send", &merge_json(&json!({"ref": agent.pane, "text": TEXT}), &more));
    assert_refused(&guarded(json!({"if_state": "running"})), "E_STATE_CHANGED");
    assert_refused(&guarded(json!({"if_dialog": "no such dialog"})), "E_STATE_CHANGED");
    assert_refused(&guarded(json!({"if_runtime": "runtime:00"})), "E_RUNTIME_STALE");
    wait_until("the state to be older than a millisecond", SOON, || {
        guarded(json!({"if_updated_within_ms": 1, "if_state": "unknown"})).json()["code"] == "E_STATE_CHANGED"
    });
    fixture.show_scene(&agent, "running", "running");
    for answer in post_all_actions(&fixture, &seen, &agent.pane, &json!({})) {
        assert_refused(&answer, "E_STATE_CHANGED");
    }
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    let error = assert_refused(&fixture.send(&agent.pane, TEXT), "E_PRECONDITION");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("agtmux respond")), "{error}");
    fixture.show_scene(&agent, "garbage", "unknown");
    for (action, body) in [("send", json!({"text": TEXT})), ("kill", json!({})), ("kill", json!({"signal": "KILL"}))] {
        let error =
            assert_refused(&fixture.post(action, &merge_json(&json!({"ref": agent.pane}), &body)), "E_PRECONDITION");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--force-stale")), "{error}");
    }
    agent.assert_no_input();
    let forced = assert_done(&guarded(json!({"force_stale": true, "no_enter": true})));
    assert_eq!(agent.complete_input(), format!("\x1b[200~{TEXT}\x1b[201~").into_bytes());
    let record = fixture.get(&format!("/v1/actions/{}", forced["action_id"].as_str().expect("an id")));
    assert_eq!((&record["forced"], &record["status"]), (&json!(true), &json!("done")));
}

#[test]
fn send_succeeds_while_all_guards_hold() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seen = fixture.snapshot("claude");
    let time = |field: &str| seen[field].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
    assert_eq!(time("expires_at").duration_since(time("observed_at")).as_secs(), 30);
    let guards =
        json!({"text": TEXT, "if_state": "idle", "if_runtime": agent.runtime, "if_updated_within_ms": 3_600_000});
    assert_done(&fixture.post("send", &ActionFixture::with_snapshot(&seen, &agent.runtime, &guards)));
    assert_eq!(agent.submitted_texts(), [TEXT]);
}

#[test]
fn incomplete_or_failing_guards_are_refused() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let name = &agent.pane;
    for (action, body) in [
        ("send", json!({"ref": name, "text": TEXT, "nonce": "alone"})),
        ("kill", json!({"ref": name, "nonce": "alone"})),
        ("attach", json!({"ref": name, "nonce": "alone"})),
        ("view-output", json!({"ref": name, "nonce": "alone"})),
        ("send", json!({"ref": name, "keys": ["x"], "no_enter": true})),
        ("view-output", json!({"ref": name, "request_ref": "again"})),
    ] {
        assert_refused(&fixture.post(action, &body), "E_BAD_REQUEST");
    }
    // Read-only actions check their guards as well.
    for action in ["snapshot", "attach", "view-output"] {
        assert_refused(&fixture.post(action, &json!({"ref": name, "if_state": "error"})), "E_STATE_CHANGED");
        assert_refused(&fixture.post(action, &json!({"ref": name, "if_runtime": "other"})), "E_RUNTIME_STALE");
        assert_refused(
            &fixture.post(action, &json!({"ref": name, "not_after": "2026-01-01T00:00:00Z"})),
            "E_PRECONDITION",
        );
    }
    agent.assert_no_input();
}

#[test]
fn a_snapshot_allows_one_action() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let seen = fixture.snapshot(&agent.pane);
    let key = |more: Value| {
        fixture.post(
            "send",
            &ActionFixture::with_snapshot(&seen, &agent.pane, &merge_json(&json!({"keys": ["x"]}), &more)),
        )
    };
    // Read-only and refused actions do not use up the snapshot.
    assert_done(&fixture.post("view-output", &ActionFixture::with_snapshot(&seen, &agent.pane, &json!({}))));
    assert_refused(&key(json!({"profile": "shell"})), "E_PRECONDITION");
    assert_done(&key(json!({})));
    let error = assert_refused(&key(json!({})), "E_SNAPSHOT_EXPIRED");
    assert!(error["message"].as_str().is_some_and(|why| why.contains("already used")), "{error}");
    assert_eq!(agent.complete_input(), b"x");
}

#[test]
fn expired_or_unknown_snapshots_are_refused() {
    let fixture = ActionFixture::new("actions.snapshot_lifetime = \"1ms\"");
    let agent = fixture.agent("work");
    let seen = fixture.snapshot(&agent.pane);
    wait_until("the snapshot to expire", SOON, || {
        let answer = fixture.post(
            "send",
            &ActionFixture::with_snapshot(&seen, &agent.pane, &json!({"text": TEXT, "if_state": "error"})),
        );
        answer.json()["code"] == "E_SNAPSHOT_EXPIRED"
    });
    for answer in post_all_actions(&fixture, &seen, &agent.pane, &json!({})) {
        let error = assert_refused(&answer, "E_SNAPSHOT_EXPIRED");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("older than")), "{error}");
    }
    for unknown in [json!({"nonce": "0"}), json!({"nonce": null}), json!({"snapshot_id": "0"})] {
        let body = merge_json(
            &ActionFixture::with_snapshot(&seen, &agent.pane, &json!({"text": TEXT, "force_stale": true})),
            &unknown,
        );
        assert_refused(&fixture.post("send", &body), "E_SNAPSHOT_EXPIRED");
    }
    agent.assert_no_input();
    assert_done(
        &fixture.post(
            "send",
            &ActionFixture::with_snapshot(&seen, &agent.pane, &json!({"text": TEXT, "force_stale": true})),
        ),
    );
    assert_eq!(agent.submitted_texts(), [TEXT]);
}

#[test]
fn send_leaves_copy_mode_or_is_refused_by_setting() {
    let in_mode =
        |agent: &RecordingAgent| agent.server.run(&["display-message", "-p", "-t", &agent.pane, "#{pane_in_mode}"]);
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.server.run(&["copy-mode", "-t", &agent.pane]);
    let done = assert_done(&fixture.send(&agent.pane, TEXT));
    assert_eq!(done["left_copy_mode"], true, "{done}");
    assert_eq!((agent.submitted_texts(), in_mode(&agent)), (vec![TEXT.to_owned()], "0".to_owned()));
    assert_eq!(assert_done(&fixture.send(&agent.pane, TEXT))["left_copy_mode"], false);
    agent.server.run(&["copy-mode", "-t", &agent.pane]);
    let told = agtmux(&fixture.world, &["send", &agent.pane, "--text", TEXT]).text();
    assert!(told.contains("; the pane left copy mode ("), "{told}");

    let fixture = ActionFixture::new("tmux_bridge.leave_copy_mode = false");
    let agent = fixture.agent("work");
    agent.server.run(&["copy-mode", "-t", &agent.pane]);
    for body in [json!({"text": TEXT}), json!({"keys": ["Escape"]})] {
        assert_refused(&fixture.post("send", &merge_json(&json!({"ref": agent.pane}), &body)), "E_PRECONDITION");
    }
    assert_refused(&fixture.post("kill", &json!({"ref": agent.pane})), "E_PRECONDITION");
    assert_eq!(in_mode(&agent), "1");
    assert!(fixture.audit().iter().all(|record| record["status"] == "refused"), "{:?}", fixture.audit());
    agent.server.run(&["copy-mode", "-q", "-t", &agent.pane]);
    agent.assert_no_input();
}

#[test]
fn send_is_refused_for_synchronized_or_disabled_panes() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let (server, pane) = (&agent.server, agent.pane.as_str());
    let refused = || {
        let error = assert_refused(&fixture.send(pane, TEXT), "E_PRECONDITION");
        error["hint"].as_str().unwrap_or_default().to_owned()
    };
    server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "on"]);
    assert!(refused().contains("synchronize-panes off"));
    server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "off"]);
    server.run(&["select-pane", "-d", "-t", pane]);
    assert!(refused().contains("select-pane -e"));
    server.run(&["select-pane", "-e", "-t", pane]);
    agent.assert_no_input();
}

#[test]
fn send_to_a_dead_pane_is_refused_and_the_server_survives() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.server.run(&["set-option", "-w", "-t", &agent.pane, "remain-on-exit", "on"]);
    let (server, seen) = (agent.server.pid(), fixture.snapshot(&agent.pane));
    let program = agent.server.panes()[0].pid;
    // A send to a dead pane can crash tmux. Every send is refused, before and after the daemon notices the death.
    process::signal(program, Signal::KILL);
    for more in [json!({}), json!({"profile": "shell"}), json!({"force_stale": true})] {
        let answer = fixture.post("send", &merge_json(&json!({"ref": agent.pane, "text": TEXT}), &more));
        assert_ne!(answer.status, 200, "{}", answer.json());
    }
    wait_until("the death to be noticed", SOON, || {
        fixture.item(&agent).is_some_and(|item| item["agent_type"].is_null())
    });
    for body in [json!({"text": TEXT, "profile": "shell"}), json!({"keys": ["Enter"], "profile": "shell"})] {
        assert_refused(&fixture.post("send", &merge_json(&json!({"ref": agent.pane}), &body)), "E_RUNTIME_STALE");
    }
    assert_refused(
        &fixture.post("send", &ActionFixture::with_snapshot(&seen, &agent.pane, &json!({"text": TEXT}))),
        "E_RUNTIME_STALE",
    );
    assert_eq!((agent.server.pid(), agent.input_so_far()), (server, Vec::new()));
}

/// The agent exits while keys are typed. Its input box stays on the screen above the prompt of its shell.
#[test]
fn keys_stop_when_the_agent_exits_to_its_shell() {
    let fixture = ActionFixture::new("tmux_bridge.sequential_send_delay_ms = 1500");
    let dir = FakeAgent::fresh_dir(&fixture.world);
    let shell_input = dir.join("shell");
    let command =
        format!("({}); stty raw -echo; exec cat >{}", FakeAgent::command(&fixture.world, &dir), shell_input.display());
    let pane = fixture.server.new_session("work", &command);
    let agent = fixture.wait_for_idle_agent(&fixture.server, pane, dir);
    let is_agent = |pid: &u32| process::argv(*pid).first().is_some_and(|argv| argv.ends_with(b"/claude"));
    let program = process::descendants(agent.server.panes()[0].pid).into_iter().find(is_agent).expect("the agent runs");
    let keys = json!({"ref": agent.runtime, "keys": ["r", "m", "Enter"], "request_ref": "half"});
    let answer = std::thread::scope(|scope| {
        let pressing = scope.spawn(|| fixture.post("send", &keys));
        wait_until("the first key", SOON, || agent.input_so_far() == b"r");
        // Stop the agent first so that it starts no more children. Kill the children too: they would read its input.
        process::signal(program, Signal::STOP);
        wait_until("the agent to stop", SOON, || process::is_stopped(program));
        for pid in [vec![program], process::descendants(program)].concat() {
            process::signal(pid, Signal::KILL);
        }
        pressing.join().expect("answered")
    });
    assert_refused(&answer, "E_RUNTIME_STALE");
    let record = fixture.audit().pop().expect("written down");
    assert_eq!(
        (&record["status"], &record["request_ref"]),
        (&json!("failed"), &json!("half")),
        "the first key was typed"
    );
    wait_until("the shell to read", SOON, || shell_input.exists());
    assert_refused(&fixture.send(&agent.pane, TEXT), "E_PRECONDITION");
    agent.server.run(&["send-keys", "-t", &agent.pane, "-l", "mark"]);
    wait_until("the mark", SOON, || std::fs::read(&shell_input).is_ok_and(|read| read.ends_with(b"mark")));
    assert_eq!(std::fs::read(&shell_input).expect("the input file exists"), b"mark");
}

#[test]
fn ambiguous_references_are_refused_with_all_matches() {
    let fixture = ActionFixture::new("");
    let other = fixture.world.tmux("other");
    let (one, two) = (fixture.agent("work"), fixture.agent_on_server(&other, "work"));
    assert_eq!(one.pane, two.pane);
    for reference in ["%0", "work", "claude", "pane:host/work/@0/%0"] {
        let error = assert_refused(&fixture.send(reference, TEXT), "E_REF_AMBIGUOUS");
        let message = error["message"].as_str().unwrap_or_default();
        for server in ["default", "other"] {
            assert!(message.contains(&format!("pane:host@{server}/work/@0/%0")), "{message}");
        }
    }
    one.assert_no_input();
    two.assert_no_input();
    assert_done(&fixture.send("pane:host@other/work/@0/%0", "to the other"));
    assert_done(&fixture.send("pane:host@default/work/@0/%0", "to the first"));
    assert_eq!(
        (one.submitted_texts(), two.submitted_texts()),
        (vec!["to the first".into()], vec!["to the other".into()])
    );
    // A prefix of a name does not match.
    for reference in ["wor", "work-", "w", "clau", "pane:host/wor/@0/%0", "%00x", "=work", "work:"] {
        let answer = fixture.send(reference, TEXT);
        assert!(matches!(answer.json()["code"].as_str(), Some("E_REF_NOT_FOUND" | "E_REF_INVALID")), "{reference}");
    }
}

#[test]
fn pane_exists_check_and_claude_code_running_check() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.server.run(&["split-window", "-d", "-t", "=work:", "cat"]);
    let health = |reference: &str| fixture.get(&format!("/v1/actions/health?ref={}", reference.replace('%', "%25")));
    let good = health(&agent.pane);
    assert_eq!((&good["available"], &good["running"], &good["reason"]), (&json!(true), &json!(true), &Value::Null));
    assert_eq!(good["runtime_id"].as_str().map(|id| format!("runtime:{id}")), Some(agent.runtime.clone()));
    let no_agent = wait_for("the other pane", SOON, || {
        let answer = health("%1");
        answer["available"].is_boolean().then_some(answer)
    });
    assert_eq!((&no_agent["available"], &no_agent["running"]), (&json!(true), &json!(false)));
    assert!(no_agent["reason"].is_string(), "{no_agent}");
    assert_eq!(health("%77")["code"], "E_REF_NOT_FOUND");
    assert_eq!(fixture.get("/v1/actions/health?reff=1")["code"], "E_BAD_REQUEST");
    process::signal(agent.server.panes()[0].pid, Signal::KILL);
    wait_until("the health check to report the end", SOON, || health(&agent.pane)["running"] != true);
}

#[test]
fn keys_and_shell_text_are_refused_while_a_dialog_is_open() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let shell = json!({"ref": agent.runtime, "text": "y", "profile": "shell"});
    assert_refused(&fixture.post("send", &shell), "E_PRECONDITION");
    agent.draw_scene("dialog");
    // The dialog is on the screen; the daemon may not have noticed it yet.
    wait_until("the dialog on the screen", SOON, || {
        fixture.server.run(&["capture-pane", "-p", "-t", &agent.pane]).contains("Do you want to proceed?")
    });
    for keys in [json!(["Enter"]), json!(["1"]), json!(["y", "Enter"])] {
        assert_refused(&fixture.post("send", &json!({"ref": agent.runtime, "keys": keys})), "E_PRECONDITION");
    }
    assert_refused(&fixture.post("send", &shell), "E_PRECONDITION");
    agent.assert_no_input();
    let many = json!({"ref": agent.runtime, "keys": vec!["Up"; 300]});
    assert_refused(&fixture.post("send", &many), "E_BAD_REQUEST");
}
