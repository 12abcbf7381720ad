//! Hooks of scripts in any language, by the scenarios of the tmux-bridge document.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;

use agtmux::{SOON, items, list, start, world};
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use bridge::{follow, hook, post, session_start};
use http::get;
use serde_json::{Value, json};

/// What the store has of an agent: its panes in tmux and in iTerm.
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

/// A world with a scripted agent in one pane. Gives the pane.
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
    // From now on its session is enough.
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
    assert_eq!(stored_panes(&world, &agent_id), panes, "what a hook does not tell stays");
}

#[test]
fn session_end_preserves_pane_id() {
    let (world, pane) = world_with_agent();
    let tmux = world.tmux("default");
    let events = follow(&world, "", None);
    let agent_id = hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let available = || get(&world.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    events.until("it to be reachable", |event| event.is("commander_availability") && event.data["available"] == true);
    assert_eq!(available()["commander_available"], true);
    hook(&world, "session-end", &json!({"session_id": "s1", "reason": "prompt_input_exit"}));
    // The hook is enough: the process has not ended yet.
    let seen = events.until("its end", |event| event.is("session_ended"));
    let availability: Vec<&Value> =
        seen.iter().filter(|e| e.is("commander_availability")).map(|event| &event.data["available"]).collect();
    assert_eq!(availability, [false]);
    assert_eq!(available()["commander_available"], false);
    assert_eq!(stored_panes(&world, &agent_id), Some((Some(pane.clone()), None)));
    let answer = post(&world, &format!("/api/respond/{agent_id}"), r#"{"mode": "select", "option_index": 0}"#);
    assert_eq!((answer.status, &answer.json()["error_type"]), (503, &json!("pane_not_found")));
    // What comes late is no new session, and a new one is.
    hook(&world, "stop", &json!({"session_id": "s1"}));
    hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let begun = events.next().expect("an event");
    assert!(begun.is("session_created") && begun.data["agent_id"] == agent_id, "{begun:?}");
    events.until("it to be reachable again", |event| event.data["available"] == true);
    hook(&world, "session-end", &json!({"session_id": "s1"}));
    events.until("its end", |event| event.is("session_ended"));
    tmux.run(&["respawn-pane", "-k", "-t", &pane, "cat"]);
    wait_until("the process to be gone", SOON, || items(&list(&world)).iter().all(|item| item["agent_id"].is_null()));
    let other = tmux.new_session("other", &world.fake_agent_command("claude"));
    hook(&world, "session-start", &session_start("s2", &other, tmux.socket()));
    let next = events.next().expect("an event");
    assert!(next.is("session_created") && next.data["agent_id"] != agent_id, "it ended once: {next:?}");
}

#[test]
fn of_a_session_that_is_open_twice_only_the_one_that_is_meant_is_told_of() {
    let (world, first) = world_with_agent();
    let tmux = world.tmux("default");
    let second = tmux.new_session("again", &world.fake_agent_command("claude"));
    let state_of = |pane: &str| {
        let listing = list(&world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane);
        item.map(|item| item["state"].clone()).unwrap_or_default()
    };
    let agent_id = hook(&world, "session-start", &session_start("s1", &first, tmux.socket()));
    wait_until("both", SOON, || state_of(&second) != Value::Null);
    assert_eq!(hook(&world, "session-start", &session_start("s1", &second, tmux.socket())), agent_id);
    wait_until("both are at rest", SOON, || state_of(&first) == "idle" && state_of(&second) == "idle");
    let stop = || post(&world, "/hook/stop", r#"{"session_id": "s1"}"#).json()["bound"].clone();
    assert_eq!(stop(), false, "nobody knows which one it is");
    let answer = post(&world, &format!("/api/respond/{agent_id}"), r#"{"mode": "select", "option_index": 0}"#);
    assert_eq!((answer.status, &answer.json()["error_type"]), (409, &json!("wrong_state")), "{}", answer.json());
    let events = follow(&world, "", None);
    // The one that was followed goes: it is followed where it is left.
    tmux.run(&["kill-pane", "-t", &first]);
    wait_until("it to be gone", SOON, || state_of(&first) == Value::Null);
    assert_eq!(stop(), true);
    wait_until("its end", SOON, || state_of(&second) == "completed");
    let seen = events.until("its end", |event| event.data["new_state"] == "COMPLETE");
    assert!(!seen.iter().any(|event| event.is("session_ended") || event.is("session_created")), "{seen:?}");
    let available = get(&world.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    assert_eq!(available["commander_available"], true, "{available}");
}

#[test]
fn of_a_session_that_is_open_twice_the_end_in_one_place_is_not_the_end_of_the_other() {
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
    // Nobody knows which one this is.
    post(&world, "/hook/session-end", r#"{"session_id": "s1"}"#);
    hook(&world, "stop", &session_start("s1", &first, tmux.socket()));
    let seen = events.until("the word of the first", |event| event.data["new_state"] == "COMPLETE");
    assert!(seen.iter().all(|event| event.is("state_changed")), "{seen:?}");
    hook(&world, "session-end", &session_start("s1", &first, tmux.socket()));
    events.until("its own end", |event| event.is("session_ended"));
}

#[test]
fn an_end_that_is_sent_again_after_the_session_came_back_is_no_end() {
    let (world, pane) = world_with_agent();
    let tmux = world.tmux("default");
    let events = follow(&world, "?types=session_ended,session_created,state_changed", None);
    let start = session_start("s1", &pane, tmux.socket());
    let mut end = start.clone();
    end["event_id"] = json!("end-1");
    hook(&world, "session-start", &start);
    hook(&world, "session-end", &end);
    events.until("its end", |event| event.is("session_ended"));
    hook(&world, "session-start", &start);
    events.until("it to be back", |event| event.is("session_created"));
    hook(&world, "session-end", &end);
    hook(&world, "stop", &start);
    let seen = events.until("its word", |event| event.data["new_state"] == "COMPLETE");
    assert!(!seen.iter().any(|event| event.is("session_ended")), "{seen:?}");
}

#[test]
fn nothing_of_what_is_refused_is_kept_and_nothing_secret_of_the_rest() {
    let (world, pane) = world_with_agent();
    for body in [r#"{"session_id": "s1", "tmux_pane": "zero"}"#, r#"["s1", "/tmp", "%0"]"#] {
        assert_eq!(post(&world, "/hook/stop", body).status, 400, "{body}");
    }
    let agent_id = hook(&world, "stop", &json!({"session_id": "s1"}));
    assert_eq!(stored_panes(&world, &agent_id), Some((None, None)), "the pane of the one that was refused");
    let mut secret = session_start("TOKEN=hunter2hunter2", &pane, world.tmux("default").socket());
    secret["iterm_pane_id"] = json!("PASSWORD=hunter2hunter2");
    let agent_id = hook(&world, "session-start", &secret);
    wait_for_state(&world, "idle");
    let answer = post(&world, "/hook/stop", r#"{"session_id": "TOKEN=hunter2hunter2"}"#).json();
    assert_eq!((&answer["agent_id"], &answer["bound"]), (&json!(agent_id), &json!(true)), "it is the same session");
    for name in ["state.db", "state.db-wal"] {
        let bytes = std::fs::read(world.state_dir().join(name)).unwrap_or_default();
        assert!(!bytes.windows(7).any(|seven| seven == b"hunter2"), "{name}");
    }
}

#[test]
fn the_same_event_is_taken_once_and_another_of_its_name_is_refused() {
    let (world, pane) = world_with_agent();
    let event = |prompt: &str| {
        let mut body = session_start("s1", &pane, world.tmux("default").socket());
        (body["event_id"], body["prompt"]) = (json!("one"), json!(prompt));
        post(&world, "/hook/user-prompt-submit", &body.to_string()).status
    };
    assert_eq!([event("go"), event("go"), event("stay")], [200, 200, 409]);
}

#[test]
fn every_hook_of_the_document_tells_its_state() {
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
fn what_is_no_hook_is_refused_with_a_word_about_it() {
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
