//! What is asked of an agent is done only while it is the one that was seen. Each refusal is checked by what the agent has read.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use agtmux::SOON;
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Agent, Stage, assert_done, assert_refused, merged};

const TEXT: &str = "hello, this is for you alone";

/// Every action that changes something, on what was seen.
fn post_all_actions(stage: &Stage, snapshot: &Value, reference: &str, more: &Value) -> Vec<http::Answer> {
    let bodies = [
        ("send", json!({"text": TEXT})),
        ("send", json!({"keys": ["C-u"]})),
        ("kill", json!({"signal": "INT"})),
        ("kill", json!({"signal": "KILL"})),
        ("respond", json!({"answer": "approve"})),
    ];
    let ask = |(action, body): (&str, Value)| stage.post(action, &Stage::on(snapshot, reference, &merged(&body, more)));
    bodies.into_iter().map(ask).collect()
}

#[test]
fn a_pane_that_was_respawned_is_another_one() {
    let stage = Stage::new("");
    let old = stage.agent("work");
    let seen = stage.snapshot(&old.runtime);
    let dir = stage.fresh_dir();
    stage.server.run(&["respawn-pane", "-k", "-t", &old.pane, &stage.agent_command(&dir)]);
    let listed = || stage.item(&old).map(|item| format!("runtime:{}", item["runtime_id"].as_str().unwrap_or_default()));
    wait_until("the old one to be gone", SOON, || listed().as_ref() != Some(&old.runtime));
    let new = stage.settled(&stage.server, old.pane.clone(), dir);
    assert_ne!(old.runtime, new.runtime);
    for answer in post_all_actions(&stage, &seen, &new.pane, &json!({})) {
        assert_refused(&answer, "E_RUNTIME_STALE");
    }
    // Nobody can mean a pane that they have not seen.
    for answer in post_all_actions(&stage, &seen, &new.pane, &json!({"force_stale": true})) {
        assert_refused(&answer, "E_RUNTIME_STALE");
    }
    assert_refused(&stage.send(&old.runtime, TEXT), "E_REF_NOT_FOUND");
    let only_old = json!({"ref": new.pane, "text": TEXT, "if_runtime": old.runtime});
    assert_refused(&stage.post("send", &only_old), "E_RUNTIME_STALE");
    new.assert_untouched();
    assert_done(&stage.post("send", &merged(&only_old, &json!({"if_runtime": new.runtime}))));
    assert_eq!(new.submitted(), [TEXT]);
}

/// A place is named by its window; an agent, and what was seen of it, move along.
#[test]
fn a_pane_that_was_moved_is_the_same_one_in_another_place() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    stage.server.run(&["split-window", "-d", "-t", "=work:", "cat"]);
    let item = stage.item(&agent).expect("listed");
    let place = format!("pane:host/work/{}/{}", item["identity"]["window_id"].as_str().expect("an id"), agent.pane);
    let seen = stage.snapshot(&place);
    stage.server.run(&["break-pane", "-d", "-s", &agent.pane]);
    wait_for("the move to be seen", SOON, || {
        let now = stage.item(&agent).unwrap_or_default();
        if now["identity"]["window_id"] == item["identity"]["window_id"] { Err(now) } else { Ok(()) }
    });
    assert_refused(&stage.send(&place, TEXT), "E_REF_NOT_FOUND");
    agent.assert_untouched();
    assert_done(&stage.post("send", &Stage::on(&seen, &agent.runtime, &json!({"text": "one"}))));
    assert_done(&stage.send(&agent.pane, "two"));
    assert_eq!(agent.submitted(), ["one", "two"]);
}

#[test]
fn a_server_that_was_started_again_has_other_panes_of_the_same_ids() {
    let stage = Stage::new("");
    let old = stage.agent("work");
    let seen = stage.snapshot(&old.pane);
    stage.server.kill_server();
    let new = stage.agent("work");
    assert_eq!((&old.pane, old.runtime == new.runtime), (&new.pane, false));
    for more in [json!({}), json!({"force_stale": true})] {
        for answer in post_all_actions(&stage, &seen, &new.pane, &more) {
            assert_refused(&answer, "E_RUNTIME_STALE");
        }
    }
    assert_refused(&stage.send(&old.runtime, TEXT), "E_REF_NOT_FOUND");
    new.assert_untouched();
}

#[test]
fn a_state_that_is_another_one_is_refused_unless_it_is_forced() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let seen = stage.snapshot(&agent.pane);
    let guarded = |more: Value| stage.post("send", &merged(&json!({"ref": agent.pane, "text": TEXT}), &more));
    assert_refused(&guarded(json!({"if_state": "running"})), "E_STATE_CHANGED");
    assert_refused(&guarded(json!({"if_dialog": "no such dialog"})), "E_STATE_CHANGED");
    assert_refused(&guarded(json!({"if_runtime": "runtime:00"})), "E_RUNTIME_STALE");
    wait_until("the state to be older than a millisecond", SOON, || {
        guarded(json!({"if_updated_within_ms": 1, "if_state": "unknown"})).json()["code"] == "E_STATE_CHANGED"
    });
    stage.show(&agent, "running", "running");
    for answer in post_all_actions(&stage, &seen, &agent.pane, &json!({})) {
        assert_refused(&answer, "E_STATE_CHANGED");
    }
    stage.show(&agent, "dialog", "waiting_approval");
    let error = assert_refused(&stage.send(&agent.pane, TEXT), "E_PRECONDITION");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("agtmux respond")), "{error}");
    stage.show(&agent, "garbage", "unknown");
    for (action, body) in [("send", json!({"text": TEXT})), ("kill", json!({})), ("kill", json!({"signal": "KILL"}))] {
        let error = assert_refused(&stage.post(action, &merged(&json!({"ref": agent.pane}), &body)), "E_PRECONDITION");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--force-stale")), "{error}");
    }
    agent.assert_untouched();
    let forced = assert_done(&guarded(json!({"force_stale": true, "no_enter": true})));
    assert_eq!(agent.all_read(), format!("\x1b[200~{TEXT}\x1b[201~").into_bytes());
    let record = stage.get(&format!("/v1/actions/{}", forced["action_id"].as_str().expect("an id")));
    assert_eq!((&record["forced"], &record["status"]), (&json!(true), &json!("done")));
}

#[test]
fn guards_that_hold_let_it_through() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let seen = stage.snapshot("claude");
    let time = |field: &str| seen[field].as_str().expect("a time").parse::<jiff::Timestamp>().expect("a time");
    assert_eq!(time("expires_at").duration_since(time("observed_at")).as_secs(), 30);
    let guards =
        json!({"text": TEXT, "if_state": "idle", "if_runtime": agent.runtime, "if_updated_within_ms": 3_600_000});
    assert_done(&stage.post("send", &Stage::on(&seen, &agent.runtime, &guards)));
    assert_eq!(agent.submitted(), [TEXT]);
}

#[test]
fn what_guards_nothing_or_does_not_fit_is_refused() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let name = &agent.pane;
    for (action, body) in [
        ("send", json!({"ref": name, "text": TEXT, "nonce": "alone"})),
        ("kill", json!({"ref": name, "nonce": "alone"})),
        ("attach", json!({"ref": name, "nonce": "alone"})),
        ("view-output", json!({"ref": name, "nonce": "alone"})),
        ("send", json!({"ref": name, "keys": ["x"], "no_enter": true})),
        ("view-output", json!({"ref": name, "request_ref": "again"})),
    ] {
        assert_refused(&stage.post(action, &body), "E_BAD_REQUEST");
    }
    // Whoever looks under a condition is not shown what does not meet it.
    for action in ["snapshot", "attach", "view-output"] {
        assert_refused(&stage.post(action, &json!({"ref": name, "if_state": "error"})), "E_STATE_CHANGED");
        assert_refused(&stage.post(action, &json!({"ref": name, "if_runtime": "other"})), "E_RUNTIME_STALE");
        assert_refused(
            &stage.post(action, &json!({"ref": name, "not_after": "2026-01-01T00:00:00Z"})),
            "E_PRECONDITION",
        );
    }
    agent.assert_untouched();
}

#[test]
fn a_snapshot_is_acted_on_once() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let seen = stage.snapshot(&agent.pane);
    let key = |more: Value| stage.post("send", &Stage::on(&seen, &agent.pane, &merged(&json!({"keys": ["x"]}), &more)));
    // Looking does not change it, and what was refused has done nothing.
    assert_done(&stage.post("view-output", &Stage::on(&seen, &agent.pane, &json!({}))));
    assert_refused(&key(json!({"profile": "shell"})), "E_PRECONDITION");
    assert_done(&key(json!({})));
    let error = assert_refused(&key(json!({})), "E_SNAPSHOT_EXPIRED");
    assert!(error["message"].as_str().is_some_and(|why| why.contains("acted on before")), "{error}");
    assert_eq!(agent.all_read(), b"x");
}

#[test]
fn a_snapshot_that_is_old_or_somebody_elses_is_refused() {
    let stage = Stage::new("actions.snapshot_lifetime = \"1ms\"");
    let agent = stage.agent("work");
    let seen = stage.snapshot(&agent.pane);
    wait_until("it to be too old", SOON, || {
        let answer = stage.post("send", &Stage::on(&seen, &agent.pane, &json!({"text": TEXT, "if_state": "error"})));
        answer.json()["code"] == "E_SNAPSHOT_EXPIRED"
    });
    for answer in post_all_actions(&stage, &seen, &agent.pane, &json!({})) {
        let error = assert_refused(&answer, "E_SNAPSHOT_EXPIRED");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("older than")), "{error}");
    }
    for strange in [json!({"nonce": "0"}), json!({"nonce": null}), json!({"snapshot_id": "0"})] {
        let body = merged(&Stage::on(&seen, &agent.pane, &json!({"text": TEXT, "force_stale": true})), &strange);
        assert_refused(&stage.post("send", &body), "E_SNAPSHOT_EXPIRED");
    }
    agent.assert_untouched();
    assert_done(&stage.post("send", &Stage::on(&seen, &agent.pane, &json!({"text": TEXT, "force_stale": true}))));
    assert_eq!(agent.submitted(), [TEXT]);
}

#[test]
fn copy_mode_is_left_first_or_is_a_reason_to_refuse() {
    let in_mode = |agent: &Agent| agent.server.run(&["display-message", "-p", "-t", &agent.pane, "#{pane_in_mode}"]);
    let stage = Stage::new("");
    let agent = stage.agent("work");
    agent.server.run(&["copy-mode", "-t", &agent.pane]);
    assert_done(&stage.send(&agent.pane, TEXT));
    assert_eq!((agent.submitted(), in_mode(&agent)), (vec![TEXT.to_owned()], "0".to_owned()));

    let stage = Stage::new("tmux_bridge.leave_copy_mode = false");
    let agent = stage.agent("work");
    agent.server.run(&["copy-mode", "-t", &agent.pane]);
    for body in [json!({"text": TEXT}), json!({"keys": ["Escape"]})] {
        assert_refused(&stage.post("send", &merged(&json!({"ref": agent.pane}), &body)), "E_PRECONDITION");
    }
    assert_refused(&stage.post("kill", &json!({"ref": agent.pane})), "E_PRECONDITION");
    assert_eq!(in_mode(&agent), "1");
    assert!(stage.audit().iter().all(|record| record["status"] == "refused"), "{:?}", stage.audit());
    agent.server.run(&["copy-mode", "-q", "-t", &agent.pane]);
    agent.assert_untouched();
}

#[test]
fn panes_that_share_their_keys_or_take_none_are_refused() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let (server, pane) = (&agent.server, agent.pane.as_str());
    let refused = || {
        let error = assert_refused(&stage.send(pane, TEXT), "E_PRECONDITION");
        error["hint"].as_str().unwrap_or_default().to_owned()
    };
    server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "on"]);
    assert!(refused().contains("synchronize-panes off"));
    server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "off"]);
    server.run(&["select-pane", "-d", "-t", pane]);
    assert!(refused().contains("select-pane -e"));
    server.run(&["select-pane", "-e", "-t", pane]);
    agent.assert_untouched();
}

#[test]
fn a_dead_pane_is_refused_and_its_server_lives_on() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    agent.server.run(&["set-option", "-w", "-t", &agent.pane, "remain-on-exit", "on"]);
    let (server, seen) = (agent.server.pid(), stage.snapshot(&agent.pane));
    let program = agent.server.panes()[0].pid;
    // At once, and once it is known: neither way is anything asked of tmux that would end it.
    process::signal(program, Signal::KILL);
    for more in [json!({}), json!({"profile": "shell"}), json!({"force_stale": true})] {
        let answer = stage.post("send", &merged(&json!({"ref": agent.pane, "text": TEXT}), &more));
        assert_ne!(answer.status, 200, "{}", answer.json());
    }
    wait_until("its end to be seen", SOON, || stage.item(&agent).is_some_and(|item| item["agent_type"].is_null()));
    for body in [json!({"text": TEXT, "profile": "shell"}), json!({"keys": ["Enter"], "profile": "shell"})] {
        assert_refused(&stage.post("send", &merged(&json!({"ref": agent.pane}), &body)), "E_RUNTIME_STALE");
    }
    assert_refused(&stage.post("send", &Stage::on(&seen, &agent.pane, &json!({"text": TEXT}))), "E_RUNTIME_STALE");
    assert_eq!((agent.server.pid(), agent.read()), (server, Vec::new()));
}

/// It ends in the middle of what is typed, and leaves its box on the screen above the prompt of the shell that it was started
/// from.
#[test]
fn what_is_meant_for_an_agent_is_not_a_command_for_its_shell() {
    let stage = Stage::new("tmux_bridge.sequential_send_delay_ms = 1500");
    let dir = stage.fresh_dir();
    let notes = dir.join("shell");
    let command = format!("({}); stty raw -echo; exec cat >{}", stage.agent_command(&dir), notes.display());
    let pane = stage.server.new_session("work", &command);
    let agent = stage.settled(&stage.server, pane, dir);
    let is_agent = |pid: &u32| process::argv(*pid).first().is_some_and(|argv| argv.ends_with(b"/claude"));
    let program = process::descendants(agent.server.panes()[0].pid).into_iter().find(is_agent).expect("it runs");
    let keys = json!({"ref": agent.runtime, "keys": ["r", "m", "Enter"], "request_ref": "half"});
    let answer = std::thread::scope(|scope| {
        let pressing = scope.spawn(|| stage.post("send", &keys));
        wait_until("the first key", SOON, || agent.read() == b"r");
        // What it has started would read on in its place, and it shall start nothing more.
        process::signal(program, Signal::STOP);
        wait_until("it to stop", SOON, || process::is_stopped(program));
        for pid in [vec![program], process::descendants(program)].concat() {
            process::signal(pid, Signal::KILL);
        }
        pressing.join().expect("answered")
    });
    assert_refused(&answer, "E_RUNTIME_STALE");
    let record = stage.audit().pop().expect("written down");
    assert_eq!((&record["status"], &record["request_ref"]), (&json!("failed"), &json!("half")), "one key was typed");
    wait_until("the shell to read", SOON, || notes.exists());
    assert_refused(&stage.send(&agent.pane, TEXT), "E_PRECONDITION");
    agent.server.run(&["send-keys", "-t", &agent.pane, "-l", "mark"]);
    wait_until("the mark", SOON, || std::fs::read(&notes).is_ok_and(|read| read.ends_with(b"mark")));
    assert_eq!(std::fs::read(&notes).expect("notes"), b"mark");
}

#[test]
fn what_fits_several_is_refused_with_the_names_of_each() {
    let stage = Stage::new("");
    let other = stage.world.tmux("other");
    let (one, two) = (stage.agent("work"), stage.agent_on(&other, "work"));
    assert_eq!(one.pane, two.pane);
    for reference in ["%0", "work", "claude", "pane:host/work/@0/%0"] {
        let error = assert_refused(&stage.send(reference, TEXT), "E_REF_AMBIGUOUS");
        let message = error["message"].as_str().unwrap_or_default();
        for server in ["default", "other"] {
            assert!(message.contains(&format!("pane:host@{server}/work/@0/%0")), "{message}");
        }
    }
    one.assert_untouched();
    two.assert_untouched();
    assert_done(&stage.send("pane:host@other/work/@0/%0", "to the other"));
    assert_done(&stage.send("pane:host@default/work/@0/%0", "to the first"));
    assert_eq!((one.submitted(), two.submitted()), (vec!["to the first".into()], vec!["to the other".into()]));
    // A part of a name is no name.
    for reference in ["wor", "work-", "w", "clau", "pane:host/wor/@0/%0", "%00x", "=work", "work:"] {
        let answer = stage.send(reference, TEXT);
        assert!(matches!(answer.json()["code"].as_str(), Some("E_REF_NOT_FOUND" | "E_REF_INVALID")), "{reference}");
    }
}

#[test]
fn pane_exists_check_and_claude_code_running_check() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    stage.server.run(&["split-window", "-d", "-t", "=work:", "cat"]);
    let health = |reference: &str| stage.get(&format!("/v1/actions/health?ref={}", reference.replace('%', "%25")));
    let good = health(&agent.pane);
    assert_eq!((&good["available"], &good["running"], &good["reason"]), (&json!(true), &json!(true), &Value::Null));
    assert_eq!(good["runtime_id"].as_str().map(|id| format!("runtime:{id}")), Some(agent.runtime.clone()));
    let nobody = wait_for("the other pane", SOON, || {
        let answer = health("%1");
        answer["available"].is_boolean().then_some(answer)
    });
    assert_eq!((&nobody["available"], &nobody["running"]), (&json!(true), &json!(false)));
    assert!(nobody["reason"].is_string(), "{nobody}");
    assert_eq!(health("%77")["code"], "E_REF_NOT_FOUND");
    assert_eq!(stage.get("/v1/actions/health?reff=1")["code"], "E_BAD_REQUEST");
    process::signal(agent.server.panes()[0].pid, Signal::KILL);
    wait_until("the end to be told", SOON, || health(&agent.pane)["running"] != true);
}

#[test]
fn keys_and_shell_text_do_not_answer_what_has_just_been_asked() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let shell = json!({"ref": agent.runtime, "text": "y", "profile": "shell"});
    assert_refused(&stage.post("send", &shell), "E_PRECONDITION");
    agent.draws("dialog");
    // Whether or not anybody else knows of it yet: it is on the screen.
    wait_until("the dialog on the screen", SOON, || {
        stage.server.run(&["capture-pane", "-p", "-t", &agent.pane]).contains("Do you want to proceed?")
    });
    for keys in [json!(["Enter"]), json!(["1"]), json!(["y", "Enter"])] {
        assert_refused(&stage.post("send", &json!({"ref": agent.runtime, "keys": keys})), "E_PRECONDITION");
    }
    assert_refused(&stage.post("send", &shell), "E_PRECONDITION");
    agent.assert_untouched();
    let many = json!({"ref": agent.runtime, "keys": vec!["Up"; 300]});
    assert_refused(&stage.post("send", &many), "E_BAD_REQUEST");
}
