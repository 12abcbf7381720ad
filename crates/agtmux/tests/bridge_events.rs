//! The stream that dashboards follow, and its gaps.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;

use agtmux::{SOON, items, list, start, stop, world};
use agtmux_testkit::{World, wait_until};
use bridge::{follow, hook, session_start};
use http::{Event, get};
use serde_json::json;

fn agent(world: &World, session: &str) -> String {
    let tmux = world.tmux("default");
    let pane = tmux.new_session(session, &world.stand_in("claude"));
    wait_until("the agent", SOON, || {
        items(&list(world)).iter().any(|i| i["identity"]["pane_id"] == pane && i["agent_type"] == "claude")
    });
    hook(world, "session-start", &session_start(session, &pane, tmux.socket()))
}

fn kinds(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.kind.clone().unwrap_or_default()).collect()
}

#[test]
fn a_turn_is_told_from_its_command_to_its_end() {
    let world = world();
    start(&world);
    let events = follow(&world, "", None);
    let agent_id = agent(&world, "s1");
    events.until("the availability", |event| event.is("commander_availability"));
    hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": "go"}));
    let begun = events.until("the work", |event| event.data["new_state"] == "PROCESSING");
    assert_eq!(kinds(&begun), ["turn_created", "state_changed", "state_changed"]);
    assert_eq!((&begun[0].data["actor"], &begun[0].data["intent"]), (&json!("USER"), &json!("COMMAND")));
    assert_eq!((&begun[1].data["old_state"], &begun[1].data["new_state"]), (&json!("IDLE"), &json!("COMMANDED")));
    assert_eq!(begun[2].data["turn_id"], begun[0].data["turn_id"]);
    hook(&world, "stop", &json!({"session_id": "s1"}));
    let ended = events.until("the end", |event| event.data["new_state"] == "COMPLETE");
    assert_eq!(kinds(&ended), ["turn_created", "state_changed"]);
    assert_eq!((&ended[0].data["actor"], &ended[0].data["intent"]), (&json!("AGENT"), &json!("COMPLETION")));
    assert!(ended.iter().all(|event| event.data["agent_id"] == agent_id));
}

#[test]
fn a_reader_chooses_types_and_agents() {
    let world = world();
    start(&world);
    let (one, _) = (agent(&world, "s1"), agent(&world, "s2"));
    let turns = follow(&world, &format!("?types=turn_created&agent_id={one}"), None);
    for session in ["s2", "s1"] {
        hook(&world, "user-prompt-submit", &json!({"session_id": session, "prompt": "go"}));
        hook(&world, "stop", &json!({"session_id": session}));
    }
    let seen = turns.until("the completion", |event| event.data["intent"] == "COMPLETION");
    assert_eq!(kinds(&seen), ["turn_created", "turn_created"]);
    assert!(seen.iter().all(|event| event.data["agent_id"] == one), "{seen:?}");
    assert_eq!(get(&world.socket(), "/api/events/stream?types=nonsense").status, 400);
    assert_eq!(get(&world.socket(), "/api/events/stream?typo=1").status, 400);
}

#[test]
fn whoever_comes_back_misses_nothing_or_is_told_to_start_over() {
    let world = world();
    start(&world);
    agent(&world, "s1");
    let events = follow(&world, "?types=turn_created", None);
    let turn = |n: u32| hook(&world, "user-prompt-submit", &json!({"session_id": "s1", "prompt": n.to_string()}));
    turn(1);
    let first = events.next().and_then(|event| event.id).expect("an id");
    drop(events);
    turn(2);
    turn(3);
    let again = follow(&world, "?types=turn_created", Some(first));
    let ids: Vec<u64> = [again.next(), again.next()].into_iter().flatten().filter_map(|event| event.id).collect();
    assert!(ids.len() == 2 && ids[0] > first && ids[1] > ids[0], "{ids:?} after {first}");
    stop(&world);
    start(&world);
    let too_late = follow(&world, "", Some(first));
    assert!(too_late.next().is_some_and(|event| event.is("resync")), "its events are of another life");
}

#[test]
fn both_extensions_registered() {
    let world = world();
    start(&world);
    let components = get(&world.socket(), "/v1/health").json()["components"].clone();
    for name in ["tmux_bridge", "commander_availability"] {
        assert_eq!(components[name]["status"], "ok", "{components}");
    }
}
