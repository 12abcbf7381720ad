//! A wait after a send: it ends after the turn that the text began, also if agtmux sees nothing of that turn.

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{CommandResult, agtmux, run};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, runtime_ref};
use agtmux_testkit::skip_without_hosts;
use serde_json::Value;

/// An agent that completed a turn, as its hook reported. In this scene, Enter begins a turn.
fn completed_agent(fixture: &ActionFixture, scene: &str) -> RecordingAgent {
    let agent = fixture.agent("work");
    agent.draw_scene(scene);
    report_state(fixture, &agent, "completed");
    fixture.wait_for_state(&agent, "completed");
    agent
}

fn report_state(fixture: &ActionFixture, agent: &RecordingAgent, state: &str) {
    let args = ["emit", "--pane", &agent.pane, "--source", "hook", "--event-type", state];
    let emitted = agtmux(&fixture.world, &args);
    assert_eq!(emitted.code, Some(0), "{emitted:?}");
}

fn send(fixture: &ActionFixture, agent: &RecordingAgent, options: &[&str]) -> CommandResult {
    let command = ["send", &agent.pane, "--text", "hello"];
    run(fixture.world.agtmux().args(command).args(options))
}

#[track_caller]
fn assert_waited_for_turn(waited: &CommandResult, agent: &FakeAgent) {
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(agent.turns_ended(), 1, "the wait ended before the turn: {waited:?}");
}

#[test]
fn the_end_of_the_turn_before_does_not_end_a_wait_if_the_next_one_starts_late() {
    let fixture = ActionFixture::new("");
    let agent = completed_agent(&fixture, "late-turn");
    let sent = send(&fixture, &agent, &[]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let item = fixture.item(&agent).unwrap_or_default();
    assert!(item["turn_pending"] == true && item["submitted_at"].is_string(), "{item}");
    let waited = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "finished"]);
    assert_waited_for_turn(&waited, &agent);
    let item = fixture.item(&agent).unwrap_or_default();
    assert!(item["turn_pending"] == false && item["submitted_at"].is_string(), "{item}");
}

#[test]
fn a_wait_for_a_turn_that_is_too_short_to_be_seen_ends() {
    let fixture = ActionFixture::new("");
    let agent = completed_agent(&fixture, "short-turn");
    let sent = send(&fixture, &agent, &[]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let waited = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "finished"]);
    assert_waited_for_turn(&waited, &agent);
}

#[test]
fn send_with_wait_ends_if_nothing_shows_that_a_turn_began() {
    let fixture = ActionFixture::new("");
    let agent = completed_agent(&fixture, "unseen-turn");
    let waited = send(&fixture, &agent, &["--wait", "--for", "completed,idle", "--timeout", "60s", "--json"]);
    assert_waited_for_turn(&waited, &agent);
    let result: Value = waited.json();
    assert_eq!((&result["verified"], &result["wait"]["outcome"]), (&"confirmed".into(), &"reached".into()));
    assert_eq!(result["wait"]["agents"][0]["reached"], "completed", "{result}");
    assert_eq!(result["wait"]["agents"][0]["runtime_id"], result["runtime_id"]);
}

#[test]
fn send_with_wait_exits_as_wait_does() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.draw_scene("works");
    let late = send(&fixture, &agent, &["--wait", "--timeout", "100ms", "--json"]);
    let result: Value = serde_json::from_slice(&late.stdout).expect("a timeout also prints JSON");
    assert_eq!((late.code, &result["wait"]["outcome"]), (Some(1), &"timeout".into()), "{late:?}");
    fixture.show_scene(&agent, "idle", "idle");
    agent.draw_scene("asks-next");
    let asked = send(&fixture, &agent, &["--wait", "--timeout", "60s"]);
    assert_eq!(asked.code, Some(6), "{asked:?}");
    assert!(asked.text().contains("5 bytes to %0") && asked.stderr.contains("agtmux respond"), "{asked:?}");
    let refused = send(&fixture, &agent, &["--wait"]);
    assert_eq!(refused.code, Some(5), "an open dialog: {refused:?}");
    for wrong in [&["--wait", "--no-enter"][..], &["--for", "idle"], &["--timeout", "1s"]] {
        assert_eq!(send(&fixture, &agent, wrong).code, Some(2), "{wrong:?}");
    }
    let shell = send(&fixture, &agent, &["--wait", "--profile", "shell"]);
    assert!(shell.code == Some(2) && shell.stderr.contains("cannot wait for a shell"), "{shell:?}");
}

/// A text that stays in the box begins no turn, so the state from before still counts.
#[test]
fn a_text_that_was_not_submitted_does_not_delay_a_wait() {
    let fixture = ActionFixture::new("tmux_bridge.max_enter_retries = 0\n");
    let agent = completed_agent(&fixture, "stuck");
    let sent = send(&fixture, &agent, &["--wait"]);
    assert!(sent.code == Some(5) && sent.stderr.contains("still in the input box"), "{sent:?}");
    let waited = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "completed", "--timeout", "0s"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

/// The state of a running agent is not outdated: it may go on for long.
#[test]
fn a_text_for_a_busy_agent_ends_a_wait_with_the_next_end() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "running", "running");
    let sent = send(&fixture, &agent, &[]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let running = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "running", "--timeout", "0s"]);
    assert_eq!(running.code, Some(0), "{running:?}");
    fixture.show_scene(&agent, "idle", "idle");
    let waited = agtmux(&fixture.world, &["wait", &agent.pane, "--for", "finished"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[test]
fn a_wait_on_a_hub_ends_after_the_turn_of_a_relayed_text() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let reference = runtime_ref(&hub.wait_for_state("vm1", &agent, "idle"));
    agent.draw_scene("late-turn");
    let sent = hub.agtmux(&["send", &reference, "--text", "hello"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let waited = hub.agtmux(&["wait", &reference, "--for", "idle,finished"]);
    assert_waited_for_turn(&waited, &agent);
    let item = hub.item("vm1", &agent).unwrap_or_default();
    assert!(item["turn_pending"] == false && item["submitted_at"].is_string(), "{item}");
}
