//! Dialogs and panels against the state of the turn: which one agtmux shows, and how each of them can be left.

use std::fs;

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{CommandResult, agtmux, run, soak};
use agtmux_testkit::wait_until;
use serde_json::{Value, json};

use crate::hints::{commands_in, hints};

/// Reports a hook event of the agent in this pane.
#[track_caller]
fn emit_hook(fixture: &ActionFixture, pane: &str, event: &str, payload: &Value) {
    let file = fixture.world.dir().join("payload.json");
    fs::write(&file, payload.to_string()).expect("the world is writable");
    let args = ["emit", "--pane", pane, "--agent", "claude", "--source", "hook", "--event-type", event];
    let key = format!("{event}-{payload}");
    let done = run(fixture.world.agtmux().args(args).args(["--dedupe-key", &key, "--payload"]).arg(&file));
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_dialog_after_a_failed_turn_is_listed_and_can_be_answered() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    for (scene, state, answer) in [("menu", "waiting_input", "deny"), ("permission", "waiting_approval", "approve")] {
        emit_hook(&fixture, &agent.pane, "StopFailure", &json!({"session_id": "s", "error": "overloaded", "n": scene}));
        fixture.wait_for_state(&agent, "error");
        let item = fixture.show_scene(&agent, scene, state);
        assert!(item["dialog"]["options"].as_array().is_some_and(|options| options.len() == 2), "{item}");
        let send = agtmux(&fixture.world, &["send", &agent.pane, "--text", "hello"]);
        assert!(send.code == Some(5) && send.stderr.contains("agtmux respond"), "{send:?}");
        let respond = agtmux(&fixture.world, &["respond", &agent.pane, answer]);
        assert_eq!(respond.code, Some(0), "{scene}: {respond:?}");
        fixture.wait_for_state(&agent, "idle");
    }
}

#[test]
fn a_panel_is_listed_and_can_be_left() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let item = fixture.show_scene(&agent, "panel", "waiting_input");
    assert_eq!(item["dialog"]["question"], "Settings  Status  Config  Usage", "{item}");
    assert_eq!(item["dialog"]["options"], json!([]));
    let text = agtmux(&fixture.world, &["send", &agent.pane, "--text", "hello"]);
    assert!(text.code == Some(5) && text.stderr.contains("agtmux respond %0 deny\n"), "{text:?}");
    let denied = agtmux(&fixture.world, &["respond", &agent.pane, "deny"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    fixture.wait_for_state(&agent, "idle");
    fixture.show_scene(&agent, "panel", "waiting_input");
    let keys = agtmux(&fixture.world, &["send", &agent.pane, "--key", "Down", "--key", "Escape"]);
    assert_eq!(keys.code, Some(0), "{keys:?}");
    fixture.wait_for_state(&agent, "idle");
    wait_until("the keys to be read", agtmux_testkit::agtmux::SOON, || {
        String::from_utf8_lossy(&agent.input_so_far()).ends_with("\u{1b}[B\u{1b}")
    });
}

/// Commands that are refused only for reasons that have nothing to do with the agent's state.
const ALWAYS_ALLOWED: [&str; 5] = ["attach", "explain", "list", "view-output", "daemon"];

/// Whether the command was refused. It was not refused if it typed something: the fake agent does not react to every key.
fn is_refused(done: &CommandResult) -> bool {
    done.code == Some(5) && !done.stderr.contains("failed after something was typed")
}

#[test]
fn every_hint_of_a_refusal_names_a_command_that_is_not_refused() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let situations = [
        ("idle", "idle"),
        ("running", "running"),
        ("permission", "waiting_approval"),
        ("asks", "waiting_input"),
        ("menu", "waiting_input"),
        ("panel", "waiting_input"),
    ];
    let tried: [&[&str]; 7] = [
        &["send", "--text", "hello"],
        &["send", "--key", "Escape"],
        &["respond", "approve"],
        &["respond", "deny"],
        &["respond", "9"],
        &["respond", "1,2"],
        &["respond", "--text", "hello"],
    ];
    // The fake agent ignores most answers to its other dialogs, and `respond` waits for each. `make test` tries the panel.
    let situations = if soak() { &situations[..] } else { &situations[5..] };
    let mut followed = 0;
    for (scene, state) in situations.iter().copied() {
        for command in tried {
            let done = in_situation(&fixture, &agent, (scene, state), &with_pane(command, &agent.pane));
            if !is_refused(&done) {
                continue;
            }
            let named: Vec<_> = hints(&done).iter().flat_map(|hint| commands_in(hint, &agent.pane)).collect();
            assert!(!named.is_empty(), "{scene}: {command:?} names no command: {done:?}");
            for next in named {
                if ALWAYS_ALLOWED.contains(&next[0].as_str()) {
                    continue;
                }
                let next: Vec<&str> = next.iter().map(String::as_str).collect();
                let second = in_situation(&fixture, &agent, (scene, state), &next);
                assert!(!is_refused(&second), "{scene}: {command:?} names {next:?}, which is refused: {second:?}");
                followed += 1;
            }
        }
    }
    assert!(followed > if soak() { 10 } else { 0 }, "only {followed} hints were followed");
}

fn with_pane<'a>(command: &[&'a str], pane: &'a str) -> Vec<&'a str> {
    [&command[..1], &[pane], &command[1..]].concat()
}

/// Makes the agent draw the scene, and runs the command once agtmux knows it.
fn in_situation(
    fixture: &ActionFixture,
    agent: &RecordingAgent,
    (scene, state): (&str, &str),
    command: &[&str],
) -> CommandResult {
    fixture.show_scene(agent, "idle", "idle");
    fixture.show_scene(agent, scene, state);
    agtmux(&fixture.world, command)
}
