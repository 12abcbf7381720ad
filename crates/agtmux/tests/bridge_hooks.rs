//! Hooks of scripts in any language, by the scenarios of the tmux-bridge document.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;

use agtmux::{SOON, items, list, start, world};
use agtmux_testkit::{World, wait_for, wait_until};
use bridge::{follow, hook, post, session_start};
use http::get;
use serde_json::{Value, json};

/// What the store has of an agent: its panes in tmux and in iTerm.
fn stored(world: &World, agent_id: &str) -> Option<(Option<String>, Option<String>)> {
    let database = rusqlite::Connection::open(world.state_dir().join("state.db")).expect("a database");
    let sql = "SELECT tmux_pane_id, iterm_pane_id FROM agents WHERE agent_id = ?1";
    database.query_row(sql, [agent_id], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

fn state(world: &World) -> Value {
    items(&list(world))[0]["state"].clone()
}

#[track_caller]
fn wait_for_state(world: &World, wanted: &str) {
    wait_for(&format!("the state {wanted}"), SOON, || {
        let state = state(world);
        if state == wanted { Ok(()) } else { Err(state.to_string()) }
    });
}

/// A world with a scripted agent in one pane. Gives the pane.
fn with_agent() -> (World, String) {
    let world = world();
    let pane = world.tmux("default").new_session("work", &world.stand_in("claude"));
    start(&world);
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    (world, pane)
}

#[test]
fn session_start_with_tmux_pane() {
    let (world, pane) = with_agent();
    let events = follow(&world, "", None);
    let agent_id = hook(&world, "session-start", &session_start("s1", &pane, world.tmux("default").socket()));
    assert_eq!(stored(&world, &agent_id), Some((Some(pane.clone()), None)));
    let seen = events.until("the availability", |event| event.is("commander_availability"));
    assert!(seen[0].is("session_created") && seen[0].data["agent_id"] == agent_id, "{seen:?}");
    assert_eq!(seen[0].data["tmux_pane_id"], pane);
    assert_eq!(seen[1].data["available"], true, "{seen:?}");
}

#[test]
fn late_discovery_via_other_hooks() {
    let (world, pane) = with_agent();
    let agent_id = hook(&world, "session-start", &json!({"session_id": "s1", "working_directory": "/tmp"}));
    assert_eq!(stored(&world, &agent_id), Some((None, None)));
    let again = hook(&world, "pre-tool-use", &session_start("s1", &pane, world.tmux("default").socket()));
    assert_eq!((again, stored(&world, &agent_id)), (agent_id.clone(), Some((Some(pane), None))));
    // From now on its session is enough.
    assert_eq!(hook(&world, "stop", &json!({"session_id": "s1"})), agent_id);
    wait_for_state(&world, "completed");
}

#[test]
fn pane_id_coexistence() {
    let (world, pane) = with_agent();
    let mut both = session_start("s1", &pane, world.tmux("default").socket());
    both["iterm_pane_id"] = json!("w0t1p2:ABC");
    let agent_id = hook(&world, "session-start", &both);
    let panes = Some((Some(pane), Some("w0t1p2:ABC".to_owned())));
    assert_eq!(stored(&world, &agent_id), panes);
    hook(&world, "stop", &json!({"session_id": "s1"}));
    assert_eq!(stored(&world, &agent_id), panes, "what a hook does not tell stays");
}

#[test]
fn session_end_preserves_pane_id() {
    let (world, pane) = with_agent();
    let tmux = world.tmux("default");
    let events = follow(&world, "", None);
    let agent_id = hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let available = || get(&world.socket(), &format!("/api/respond/{agent_id}/availability")).json();
    events.until("it to be reachable", |event| event.is("commander_availability") && event.data["available"] == true);
    assert_eq!(available()["commander_available"], true);
    hook(&world, "session-end", &json!({"session_id": "s1", "reason": "prompt_input_exit"}));
    tmux.run(&["respawn-pane", "-k", "-t", &pane, "cat"]);
    let seen = events.until("its end", |event| event.is("session_ended"));
    let availability: Vec<&Value> =
        seen.iter().filter(|e| e.is("commander_availability")).map(|event| &event.data["available"]).collect();
    assert_eq!(availability, [false]);
    assert_eq!(available()["commander_available"], false);
    assert_eq!(stored(&world, &agent_id), Some((Some(pane), None)));
}

#[test]
fn every_hook_of_the_document_tells_its_state() {
    let (world, pane) = with_agent();
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
