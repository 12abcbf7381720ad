//! A task among the agents: a runtime of the kind `task`, under the same commands.

use agtmux_testkit::{process, wait_for};
use serde_json::{Value, json};

use crate::agtmux::{Done, SOON, run};
use crate::stage::Stage;

#[track_caller]
fn agtmux(stage: &Stage, args: &[&str]) -> Done {
    let done = run(stage.agtmux().args(args));
    assert_eq!(done.code, Some(0), "{args:?}: {} {}", done.text(), done.stderr);
    done
}

/// The task of this name in `agtmux list`, once it is in this state.
#[track_caller]
fn listed(stage: &Stage, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} is {state}"), SOON, || {
        let listing = agtmux(stage, &["list", "panes", "--json"]).json();
        let items = listing["items"].as_array().cloned().unwrap_or_default();
        items.into_iter().find(|item| item["name"] == name && item["state"] == state).ok_or(listing)
    })
}

#[test]
fn a_task_is_listed_explained_read_answered_and_waited_for() {
    let stage = Stage::new();
    let task = stage.run("t", "echo hello; printf 'Go on? [y/N] '; read answer; echo got $answer; exit 0");
    let item = listed(&stage, "t", "waiting_input");
    assert_eq!((&item["agent_type"], &item["identity"]["pane_id"]), (&json!("task"), &json!(task.pane)));
    assert_eq!((&item["needs_action"], item["runtime_id"].is_string()), (&json!(true), true));
    let explained = agtmux(&stage, &["explain", "t", "--json"]).json();
    assert!(explained.to_string().contains("Go on? [y/N]"), "{explained}");
    let reached = |state: &str| agtmux(&stage, &["wait", "t", "--for", state, "--timeout", "20s", "--json"]).json();
    assert_eq!(reached("waiting_input")["outcome"], "reached");
    assert!(agtmux(&stage, &["view-output", "t"]).text().starts_with("hello\nGo on? [y/N]"));
    let typed = agtmux(&stage, &["send", "t", "--text", "yes", "--json"]).json();
    assert_eq!(typed["pane_id"], json!(task.pane));
    assert_eq!(reached("completed")["outcome"], "reached");
    assert_eq!(listed(&stage, "t", "completed")["runtime_id"], item["runtime_id"]);
    let shown = agtmux(&stage, &["view-output", "t"]).text();
    assert!(shown.contains("got yes"), "what it has shown stays: {shown}");
    let by_kind = agtmux(&stage, &["list", "panes", "--agent", "task", "--json"]).json();
    assert_eq!(by_kind["summary"]["by_agent"], json!({"task": 1}));
    let watched = agtmux(&stage, &["watch", "--once", "--format", "jsonl"]).json();
    assert_eq!((&watched["item"]["agent_type"], &watched["item"]["state"]), (&json!("task"), &json!("completed")));
    let history = agtmux(&stage, &["history", "t", "--json"]).json().to_string();
    assert!(["running", "waiting_input", "completed"].iter().all(|state| history.contains(state)), "{history}");
}

#[test]
fn a_task_that_is_killed_is_told_to_have_ended_by_that_signal() {
    let stage = Stage::new();
    // The second has a child in a group of its own, and both take no notice of anything gentler.
    let hard = "trap '' TERM HUP; set -m; sleep 1000 & while :; do wait; sleep 0.1; done";
    for (name, signal, command) in [("gentle", "TERM", "sleep 1000; true"), ("hard", "KILL", hard)] {
        let task = stage.run(name, &format!("echo up; {command}"));
        listed(&stage, name, "running");
        // It runs when it has written: a shell that has not come to its trap would end by anything.
        wait_for("what it wrote", SOON, || Some(()).filter(|()| stage.done(&["logs", name]).text() == "up\n"));
        let below = process::descendants(pid_of(&stage, &task.pane));
        let killed = agtmux(&stage, &["kill", name, "--signal", signal, "--yes", "--json"]).json();
        assert_eq!(killed["ended"], true, "{killed}");
        let exited = stage.event(&task.window, "exited");
        assert_eq!((&exited["signal"], &exited["recent_output"]), (&json!(format!("SIG{signal}")), &json!(["up"])));
        assert_eq!(below.iter().filter(|pid| process::is_alive(**pid)).count(), 0, "nobody is left behind");
        listed(&stage, name, "error");
    }
}

fn pid_of(stage: &Stage, pane: &str) -> u32 {
    stage.tmux.run(&["display-message", "-p", "-t", pane, "#{pane_pid}"]).parse().expect("a number")
}
