//! A task is a runtime of type `task` and works with the same commands as agents.

use agtmux_testkit::agtmux::{CommandResult, SOON, run};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{process, wait_for};
use serde_json::{Value, json};

#[track_caller]
fn agtmux(fixture: &TaskFixture, args: &[&str]) -> CommandResult {
    let done = run(fixture.agtmux().args(args));
    assert_eq!(done.code, Some(0), "{args:?}: {} {}", done.text(), done.stderr);
    done
}

/// Waits until `agtmux list` shows the task in this state. Returns its item.
#[track_caller]
fn listed(fixture: &TaskFixture, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} is {state}"), SOON, || {
        let listing = agtmux(fixture, &["list", "panes", "--json"]).json();
        let items = listing["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["name"] == name && item["state"] == state).ok_or(listing)
    })
}

#[test]
fn list_explain_view_send_and_wait_work_on_a_task() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "echo hello; printf 'Go on? [y/N] '; read answer; echo got $answer; exit 0");
    let item = listed(&fixture, "t", "waiting_input");
    assert_eq!((&item["agent_type"], &item["identity"]["pane_id"]), (&json!("task"), &json!(task.pane)));
    assert_eq!((&item["needs_action"], item["runtime_id"].is_string()), (&json!(true), true));
    let explained = agtmux(&fixture, &["explain", "t", "--json"]).json();
    assert!(explained.to_string().contains("Go on? [y/N]"), "{explained}");
    let reached = |state: &str| agtmux(&fixture, &["wait", "t", "--for", state, "--timeout", "20s", "--json"]).json();
    assert_eq!(reached("waiting_input")["outcome"], "reached");
    assert!(agtmux(&fixture, &["view-output", "t"]).text().starts_with("hello\nGo on? [y/N]"));
    let typed = agtmux(&fixture, &["send", "t", "--text", "yes", "--json"]).json();
    assert_eq!(typed["pane_id"], json!(task.pane));
    assert_eq!(reached("completed")["outcome"], "reached");
    assert_eq!(listed(&fixture, "t", "completed")["runtime_id"], item["runtime_id"]);
    let output = agtmux(&fixture, &["view-output", "t"]).text();
    assert!(output.contains("got yes"), "the output stays after the exit: {output}");
    let by_kind = agtmux(&fixture, &["list", "panes", "--agent", "task", "--json"]).json();
    assert_eq!(by_kind["summary"]["by_agent"], json!({"task": 1}));
    let watched = agtmux(&fixture, &["watch", "--once", "--format", "jsonl"]).json();
    assert_eq!((&watched["item"]["agent_type"], &watched["item"]["state"]), (&json!("task"), &json!("completed")));
    let history = agtmux(&fixture, &["history", "t", "--json"]).json().to_string();
    assert!(["running", "waiting_input", "completed"].iter().all(|state| history.contains(state)), "{history}");
}

#[test]
fn a_killed_task_reports_the_signal_that_ended_it() {
    let fixture = TaskFixture::new();
    // The second task has a child in its own process group and ignores TERM and HUP.
    let hard = "trap '' TERM HUP; set -m; sleep 1000 & while :; do wait; sleep 0.1; done";
    for (name, signal, command) in [("gentle", "TERM", "sleep 1000; true"), ("hard", "KILL", hard)] {
        let task = fixture.run(name, &format!("echo up; {command}"));
        listed(&fixture, name, "running");
        // Wait for output, so that the shell has set its trap.
        wait_for("the first output", SOON, || Some(()).filter(|()| fixture.task_ok(&["logs", name]).text() == "up\n"));
        let below = process::descendants(pid_of(&fixture, &task.pane));
        let killed = agtmux(&fixture, &["kill", name, "--signal", signal, "--yes", "--json"]).json();
        assert_eq!(killed["ended"], true, "{killed}");
        let exited = fixture.event(&task.window, "exited");
        assert_eq!((&exited["signal"], &exited["recent_output"]), (&json!(format!("SIG{signal}")), &json!(["up"])));
        assert_eq!(below.iter().filter(|pid| process::is_alive(**pid)).count(), 0, "no process is left");
        listed(&fixture, name, "error");
    }
}

fn pid_of(fixture: &TaskFixture, pane: &str) -> u32 {
    fixture.tmux.run(&["display-message", "-p", "-t", pane, "#{pane_pid}"]).parse().expect("a number")
}
