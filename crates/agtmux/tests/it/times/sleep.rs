//! Every process of the machine is stopped and continued, as if the machine slept.

use std::time::{Duration, Instant};

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent};
use agtmux_testkit::agtmux::{SOON, agtmux, items, list};
use agtmux_testkit::{process, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// Reports expire after 10 s. The machine sleeps longer than that.
const SETTINGS: &str = "state.running_ttl = '10s'\n";
const SLEEP: Duration = Duration::from_secs(12);

/// Stops every process of the world, lets time pass, and continues them. The daemon continues first.
fn sleep_machine(fixture: &ActionFixture) {
    let daemons = fixture.world.daemons();
    let mut pids: Vec<u32> = fixture.world.processes();
    // Stop the shells before their children: a shell that sees its child stop takes the terminal back.
    pids.sort_unstable();
    for pid in daemons.iter().chain(&pids) {
        process::signal(*pid, Signal::STOP);
    }
    wait_until("every process to stop", SOON, || pids.iter().all(is_at_rest));
    let slept = Instant::now();
    wait_until("the end of the sleep", SOON, || slept.elapsed() >= SLEEP);
    for pid in &daemons {
        process::signal(*pid, Signal::CONT);
    }
    // The daemon looks at the others before they continue.
    list(&fixture.world);
    for pid in &pids {
        process::signal(*pid, Signal::CONT);
    }
}

/// Whether the process is stopped. A client that the daemon had just started may have ended instead.
fn is_at_rest(pid: &u32) -> bool {
    process::is_stopped(*pid) || !process::is_alive(*pid)
}

/// The states that the agent has had, in order.
fn history(fixture: &ActionFixture, agent: &RecordingAgent) -> Vec<String> {
    let shown = agtmux(&fixture.world, &["history", &agent.runtime, "--json"]).json();
    let name = |item: &Value| format!("{} {}", text(&item["state"]), text(&item["reason_code"])).trim().to_owned();
    let mut states: Vec<String> = items(&shown).iter().map(name).collect();
    states.dedup();
    states
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[track_caller]
fn emit(fixture: &ActionFixture, agent: &RecordingAgent, event: &str) {
    let args = ["emit", "--pane", &agent.pane, "--agent", "claude", "--source", "hook", "--event-type", event];
    let done = agtmux(&fixture.world, &[&args[..], &["--dedupe-key", event]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn a_report_of_work_does_not_expire_while_the_machine_sleeps() {
    let fixture = ActionFixture::new(SETTINGS);
    let agent = fixture.agent("work");
    // A screen without meaning, so that only the report decides.
    agent.draw_scene("garbage");
    emit(&fixture, &agent, "running");
    fixture.wait_for_state(&agent, "running");
    let states = history(&fixture, &agent);
    sleep_machine(&fixture);
    // The next report is new evidence. Until then nothing may change.
    emit(&fixture, &agent, "waiting_approval");
    fixture.wait_for_state(&agent, "waiting_approval");
    assert_eq!(history(&fixture, &agent), [states, vec!["waiting_approval".into()]].concat());
}

#[test]
fn the_states_of_screens_last_through_a_sleep() {
    let fixture = ActionFixture::new(SETTINGS);
    let agents = [("idle", "idle"), ("running", "running"), ("dialog", "waiting_approval")].map(|(scene, state)| {
        let agent = fixture.agent(scene);
        let before = fixture.show_scene(&agent, scene, state);
        let states = history(&fixture, &agent);
        (agent, before, states)
    });
    sleep_machine(&fixture);
    for (agent, before, states) in &agents {
        // The agent draws after the sleep, so the daemon has looked at all of them.
        let after = fixture.wait_for_state(agent, text(&before["state"]));
        for field in ["state", "since", "runtime_id"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(history(&fixture, agent), *states);
    }
    let (agent, _, states) = &agents[0];
    fixture.show_scene(agent, "dialog", "waiting_approval");
    assert_eq!(history(&fixture, agent), [states.clone(), vec!["waiting_approval".into()]].concat());
}
