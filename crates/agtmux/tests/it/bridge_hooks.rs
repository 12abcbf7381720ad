//! Hook requests over HTTP, including the scenarios of the tmux-bridge document.

use agtmux_testkit::agtmux::{SOON, items, list, start, world};
use agtmux_testkit::bridge::{follow, hook, post, session_start};
use agtmux_testkit::http::get;
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use serde_json::{Value, json};

use crate::stored_payloads::stored_payloads;

/// The stored tmux and iTerm pane ids of an agent.
fn stored_panes(world: &TestWorld, agent_id: &str) -> Option<(Option<String>, Option<String>)> {
    let database = rusqlite::Connection::open(world.state_dir().join("state.db")).expect("a database");
    let sql = "SELECT tmux_pane_id, iterm_pane_id FROM agents WHERE agent_id = ?1";
    database.query_row(sql, [agent_id], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

fn state(world: &TestWorld) -> Value {
    items(&list(world))[0]["state"].clone()
}

#[track_caller]
fn wait_for_state(world: &TestWorld, wanted: &str) {
    wait_for(&format!("the state {wanted}"), SOON, || {
        let state = state(world);
        if state == wanted { Ok(()) } else { Err(state.to_string()) }
    });
}

/// A world with a scripted agent in one pane. Returns the pane id.
fn world_with_agent() -> (TestWorld, String) {
    let world = world();
    let pane = world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    (world, pane)
}

#[test]
fn session_start_with_tmux_pane() {
    let (world, pane) = world_with_agent();
    let events = follow(&world, "", None);
    let agent_id = hook(&world, "session-start", &session_start("s1", &pane, world.tmux("default").socket()));
    assert_eq!(stored_panes(&world, &agent_id), Some((Some(pane.clone()), None)));
    let seen = events.until("the availability", |event| event.is("commander_availability"));
    assert!(seen[0].is("session_created") && seen[0].data["agent_id"] == agent_id, "{seen:?}");
    assert_eq!(seen[0].data["tmux_pane_id"], pane);
    assert_eq!(seen[1].data["available"], true, "{seen:?}");
}

#[test]
fn late_discovery_via_other_hooks() {
    let (world, pane) = world_with_agent();
    let agent_id = hook(&world, "session-start", &json!({"session_id": "s1", "working_directory": "/tmp"}));
    assert_eq!(stored_panes(&world, &agent_id), Some((None, None)));
    let again = hook(&world, "pre-tool-use", &session_start("s1", &pane, world.tmux("default").socket()));
    assert_eq!((again, stored_panes(&world, &agent_id)), (agent_id.clone(), Some((Some(pane), None))));
    // The pane is known now, so the session id is enough.
    assert_eq!(hook(&world, "stop", &json!({"session_id": "s1"})), agent_id);
    wait_for_state(&world, "completed");
}

#[test]
fn pane_id_coexistence() {
    let (world, pane) = world_with_agent();
    let mut both = session_start("s1", &pane, world.tmux("default").socket());
    both["iterm_pane_id"] = json!("w0t1p2:ABC");
    let agent_id = hook(&world, "session-start", &both);
    let panes = Some((Some(pane), Some("w0t1p2:ABC".to_owned())));
    assert_eq!(stored_panes(&world, &agent_id), panes);
    hook(&world, "stop", &json!({"session_id": "s1"}));
    assert_eq!(stored_panes(&world, &agent_id), panes, "a hook without pane ids keeps the stored ones");
}

#[test]
fn session_end_preserves_pane_id() {
    let (world, pane) = world_with_agent();
    let tmux = world.tmux("default");
    let events = follow(&world, "", None);
    let agent_id = hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let available = || get(&world.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    events.until("the agent to be reachable", |event| {
        event.is("commander_availability") && event.data["available"] == true
    });
    assert_eq!(available()["commander_available"], true);
    hook(&world, "session-end", &json!({"session_id": "s1", "reason": "prompt_input_exit"}));
    // The hook alone ends the session; the process still runs.
    let seen = events.until("the end of the session", |event| event.is("session_ended"));
    let availability: Vec<&Value> =
        seen.iter().filter(|e| e.is("commander_availability")).map(|event| &event.data["available"]).collect();
    assert_eq!(availability, [false]);
    assert_eq!(available()["commander_available"], false);
    assert_eq!(stored_panes(&world, &agent_id), Some((Some(pane.clone()), None)));
    let answer = post(&world, &format!("/api/respond/{agent_id}"), r#"{"mode": "select", "option_index": 0}"#);
    assert_eq!((answer.status, &answer.json()["error_type"]), (503, &json!("pane_not_found")));
    // A late hook starts no session; session-start does.
    hook(&world, "stop", &json!({"session_id": "s1"}));
    hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let begun = events.next().expect("an event");
    assert!(begun.is("session_created") && begun.data["agent_id"] == agent_id, "{begun:?}");
    events.until("the agent to be reachable again", |event| event.data["available"] == true);
    hook(&world, "session-end", &json!({"session_id": "s1"}));
    events.until("the end of the session", |event| event.is("session_ended"));
    tmux.run(&["respawn-pane", "-k", "-t", &pane, "cat"]);
    wait_until("the process to be gone", SOON, || items(&list(&world)).iter().all(|item| item["agent_id"].is_null()));
    let other = tmux.new_session("other", &world.fake_agent_command("claude"));
    hook(&world, "session-start", &session_start("s2", &other, tmux.socket()));
    let next = events.next().expect("an event");
    assert!(next.is("session_created") && next.data["agent_id"] != agent_id, "the session ended once: {next:?}");
}

#[test]
fn hooks_of_a_session_open_in_two_panes_need_a_pane() {
    let (world, first) = world_with_agent();
    let tmux = world.tmux("default");
    let second = tmux.new_session("again", &world.fake_agent_command("claude"));
    let state_of = |pane: &str| {
        let listing = list(&world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane);
        item.map(|item| item["state"].clone()).unwrap_or_default()
    };
    let agent_id = hook(&world, "session-start", &session_start("s1", &first, tmux.socket()));
    wait_until("both agents", SOON, || state_of(&second) != Value::Null);
    assert_eq!(hook(&world, "session-start", &session_start("s1", &second, tmux.socket())), agent_id);
    wait_until("both agents to be idle", SOON, || state_of(&first) == "idle" && state_of(&second) == "idle");
    let stop = || post(&world, "/hook/stop", r#"{"session_id": "s1"}"#).json()["bound"].clone();
    assert_eq!(stop(), false, "the hook fits two panes");
    let answer = post(&world, &format!("/api/respond/{agent_id}"), r#"{"mode": "select", "option_index": 0}"#);
    assert_eq!((answer.status, &answer.json()["error_type"]), (409, &json!("wrong_state")), "{}", answer.json());
    let events = follow(&world, "", None);
    // The first pane closes: the session continues in the second one.
    tmux.run(&["kill-pane", "-t", &first]);
    wait_until("the first pane to be gone", SOON, || state_of(&first) == Value::Null);
    assert_eq!(stop(), true);
    wait_until("the completed state", SOON, || state_of(&second) == "completed");
    let seen = events.until("the end of the session", |event| event.data["new_state"] == "COMPLETE");
    assert!(!seen.iter().any(|event| event.is("session_ended") || event.is("session_created")), "{seen:?}");
    let available = get(&world.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    assert_eq!(available["commander_available"], true, "{available}");
}

#[test]
fn session_end_in_one_pane_keeps_the_session_in_the_other() {
    let (world, first) = world_with_agent();
    let tmux = world.tmux("default");
    let second = tmux.new_session("again", &world.fake_agent_command("claude"));
    let agent_id = hook(&world, "session-start", &session_start("s1", &first, tmux.socket()));
    let of_it = || items(&list(&world)).iter().filter(|item| item["agent_id"] == agent_id.as_str()).count();
    wait_until("the first", SOON, || of_it() == 1);
    wait_until("the second", SOON, || {
        hook(&world, "session-start", &session_start("s1", &second, tmux.socket()));
        of_it() == 2
    });
    let events = follow(&world, "?types=session_ended,session_created,state_changed", None);
    hook(&world, "session-end", &session_start("s1", &second, tmux.socket()));
    // This hook names no pane and fits two panes, so it ends no session.
    post(&world, "/hook/session-end", r#"{"session_id": "s1"}"#);
    hook(&world, "stop", &session_start("s1", &first, tmux.socket()));
    let seen = events.until("the state change of the first pane", |event| event.data["new_state"] == "COMPLETE");
    assert!(seen.iter().all(|event| event.is("state_changed")), "{seen:?}");
    hook(&world, "session-end", &session_start("s1", &first, tmux.socket()));
    events.until("the end of the session", |event| event.is("session_ended"));
}

#[test]
fn a_repeated_session_end_does_not_end_a_restarted_session() {
    let (world, pane) = world_with_agent();
    let tmux = world.tmux("default");
    let events = follow(&world, "?types=session_ended,session_created,state_changed", None);
    let start = session_start("s1", &pane, tmux.socket());
    let mut end = start.clone();
    end["event_id"] = json!("end-1");
    hook(&world, "session-start", &start);
    hook(&world, "session-end", &end);
    events.until("the end of the session", |event| event.is("session_ended"));
    hook(&world, "session-start", &start);
    events.until("the session to restart", |event| event.is("session_created"));
    hook(&world, "session-end", &end);
    hook(&world, "stop", &start);
    let seen = events.until("the completed state", |event| event.data["new_state"] == "COMPLETE");
    assert!(!seen.iter().any(|event| event.is("session_ended")), "{seen:?}");
}

#[test]
fn refused_hooks_and_secrets_are_not_stored() {
    let (world, pane) = world_with_agent();
    for body in [r#"{"session_id": "s1", "tmux_pane": "zero"}"#, r#"["s1", "/tmp", "%0"]"#] {
        assert_eq!(post(&world, "/hook/stop", body).status, 400, "{body}");
    }
    let agent_id = hook(&world, "stop", &json!({"session_id": "s1"}));
    assert_eq!(stored_panes(&world, &agent_id), Some((None, None)), "the pane of the refused hook is not stored");
    let mut secret = session_start("TOKEN=hunter2hunter2", &pane, world.tmux("default").socket());
    secret["iterm_pane_id"] = json!("PASSWORD=hunter2hunter2");
    let agent_id = hook(&world, "session-start", &secret);
    wait_for_state(&world, "idle");
    let answer = post(&world, "/hook/stop", r#"{"session_id": "TOKEN=hunter2hunter2"}"#).json();
    assert_eq!(
        (&answer["agent_id"], &answer["bound"]),
        (&json!(agent_id), &json!(true)),
        "both hooks belong to the same session"
    );
    let payloads = stored_payloads(&world).concat();
    assert!(payloads.contains("[redacted:") && !payloads.contains("hunter2"), "{payloads}");
    for name in ["state.db", "state.db-wal"] {
        let bytes = std::fs::read(world.state_dir().join(name)).unwrap_or_default();
        assert!(!bytes.windows(7).any(|seven| seven == b"hunter2"), "{name}");
    }
}

#[test]
fn a_repeated_event_id_is_accepted_only_with_the_same_body() {
    let (world, pane) = world_with_agent();
    let event = |prompt: &str| {
        let mut body = session_start("s1", &pane, world.tmux("default").socket());
        (body["event_id"], body["prompt"]) = (json!("one"), json!(prompt));
        post(&world, "/hook/user-prompt-submit", &body.to_string()).status
    };
    assert_eq!([event("go"), event("go"), event("stay")], [200, 200, 409]);
}

#[test]
fn every_documented_hook_sets_its_state() {
    let (world, pane) = world_with_agent();
    hook(&world, "session-start", &session_start("s1", &pane, world.tmux("default").socket()));
    wait_for_state(&world, "idle");
    for (event, more, expected) in [
        ("user-prompt-submit", json!({"prompt": "go"}), "running"),
        ("permission-request", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}}), "waiting_approval"),
        ("post-tool-use", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}}), "running"),
        ("pre-tool-use", json!({"tool_name": "Read"}), "running"),
        ("stop", json!({}), "completed"),
        ("notification", json!({"notification_type": "idle_prompt", "message": "waiting"}), "idle"),
    ] {
        let mut body = more;
        body["session_id"] = json!("s1");
        hook(&world, event, &body);
        wait_for_state(&world, expected);
    }
}

#[test]
fn invalid_hook_requests_are_refused_with_a_hint() {
    let world = world();
    start(&world);
    for (path, body, status) in [
        ("/hook/nonsense", "{}", 404),
        ("/hook/stop", "", 400),
        ("/hook/stop", "[]", 400),
        ("/hook/stop", "{}", 400),
        ("/hook/stop", r#"{"session_id": 7}"#, 400),
        ("/hook/stop", r#"{"session_id": "s", "tmux_pane": "zero"}"#, 400),
    ] {
        let answer = post(&world, path, body);
        assert_eq!(answer.status, status, "{path} {body}");
        assert!(answer.json()["hint"].is_string(), "{}", answer.json());
    }
    let long = format!(r#"{{"session_id": "{}"}}"#, "x".repeat(1000));
    assert_eq!(post(&world, "/hook/stop", &long).status, 400);
    let huge = format!(r#"{{"session_id": "s", "more": "{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(post(&world, "/hook/stop", &huge).status, 413);
}
