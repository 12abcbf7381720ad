//! A completed agent stays marked until a person has visited its pane.

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{SOON, agtmux, start, stop};
use agtmux_testkit::{wait_for, wait_for_next_second};
use serde_json::Value;

/// A completed turn becomes idle soon.
const SETTINGS: &str = "state.completed_to_idle = '1s'\n";

fn report(fixture: &ActionFixture, agent: &RecordingAgent, event_type: &str) {
    let args = ["emit", "--pane", &agent.pane, "--source", "hook", "--event-type", event_type];
    let done = agtmux(&fixture.world, &args);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

fn complete(fixture: &ActionFixture, agent: &RecordingAgent) {
    report(fixture, agent, "running");
    report(fixture, agent, "completed");
    wait_for_unseen(fixture, agent, true);
}

#[track_caller]
fn wait_for_unseen(fixture: &ActionFixture, agent: &RecordingAgent, unseen: bool) -> Value {
    wait_for(&format!("unseen to be {unseen}"), SOON, || {
        let item = fixture.item(agent).unwrap_or_default();
        if item["unseen"] == unseen { Ok(item) } else { Err(item.to_string()) }
    })
}

#[test]
fn a_completed_agent_is_unseen_until_a_client_visits_its_pane() {
    let fixture = ActionFixture::new(SETTINGS);
    let (agent, other) = (fixture.agent("work"), fixture.agent("other"));
    assert_eq!(fixture.item(&agent).unwrap_or_default()["unseen"], false, "it has not completed a turn");
    complete(&fixture, &agent);
    fixture.wait_for_state(&agent, "idle");
    let shown = agtmux(&fixture.world, &["list"]).text();
    let rows: Vec<&str> = shown.lines().skip(1).collect();
    assert!(rows[0].starts_with("idle (unseen)") && rows[0].contains("work:"), "{shown}");
    assert!(!rows[1].contains("unseen"), "{shown}");
    stop(&fixture.world);
    start(&fixture.world);
    fixture.wait_for_state(&agent, "idle");
    wait_for_unseen(&fixture, &agent, true);
    // A client that shows another pane is no visit.
    let elsewhere = fixture.server.attach("other");
    wait_for_next_second();
    complete(&fixture, &other);
    wait_for_next_second();
    elsewhere.type_keys(b"x");
    wait_for_unseen(&fixture, &other, false);
    assert_eq!(fixture.item(&agent).unwrap_or_default()["unseen"], true);
    let visitor = fixture.server.attach("work");
    wait_for_next_second();
    visitor.type_keys(b"x");
    wait_for_unseen(&fixture, &agent, false);
}

#[test]
fn seen_removes_the_mark_and_is_recorded() {
    let fixture = ActionFixture::new(SETTINGS);
    let agent = fixture.agent("work");
    complete(&fixture, &agent);
    let seen = agtmux(&fixture.world, &["seen", &agent.pane, "--json"]).json();
    assert_eq!((&seen["pane_id"], &seen["was_unseen"]), (&agent.pane.as_str().into(), &true.into()));
    wait_for_unseen(&fixture, &agent, false);
    let again = agtmux(&fixture.world, &["seen", "work"]);
    assert!(again.text().contains("was already seen"), "{again:?}");
    let audit = fixture.audit();
    let kinds: Vec<&Value> = audit.iter().map(|record| &record["kind"]).collect();
    assert_eq!(kinds, ["seen", "seen"]);
    // The next turn counts again.
    complete(&fixture, &agent);
    report(&fixture, &agent, "running");
    wait_for_unseen(&fixture, &agent, false);
}
