//! What rings.

use std::fs;

use agtmux_testkit::{wait_for, wait_until};
use serde_json::json;

use crate::agtmux::{SOON, run};
use crate::stage::{Stage, short};

#[test]
fn every_bell_counts_though_the_flag_stays() {
    let stage = Stage::new();
    let task = stage.run("t", "for n in 1 2 3; do printf '\\a'; until [ -e go$n ]; do sleep 0.05; done; done; printf '\\a\\a\\a'; exec sleep 1000");
    for n in 1..=3 {
        let notify = stage.nth_event(&task.window, "notify", n);
        assert_eq!((&notify["bell_count"], short(&notify).as_str()), (&json!(n), "sent a terminal notification"));
        fs::write(stage.file(&format!("go{n}")), "").expect("written");
    }
    wait_until("three bells in one write", SOON, || {
        stage.entry(&task.window).is_some_and(|entry| entry["bell_count"] == 6)
    });
    assert_eq!(stage.nth_event(&task.window, "notify", 4)["bell_count"], 6);
    assert_eq!(stage.nth_event(&task.window, "notify", 1)["level"], "info");
}

#[test]
fn a_bell_in_a_window_that_is_nobodys_launch_is_told() {
    let stage = Stage::new();
    stage.witness();
    let window = stage.foreign_window("mine", "until [ -e ring ]; do sleep 0.05; done; printf '\\a'; exec sleep 1000");
    stage.event(&window, "started");
    let cwd = stage.tmux.run(&["display-message", "-p", "-t", &window, "#{pane_current_path}"]);
    fs::write(std::path::Path::new(&cwd).join("ring"), "").expect("written");
    stage.event(&window, "notify");
    stage.witness();
    assert_eq!(stage.told(&window), ["started", "sent a terminal notification"]);
}

fn messages_of_run(stage: &Stage, run: &str) -> Vec<String> {
    stage.events().iter().filter(|event| event["run_id"] == run).map(short).collect()
}

#[test]
fn a_bell_and_an_exit_are_told_in_order_and_in_one_sentence() {
    let stage = Stage::new();
    let rang = "sent a terminal notification";
    let both = format!("{rang}, then exited with code 0");
    // A machine that is busy may take longer from the bell to the exit than a bell waits for it.
    let (task, after) = wait_for("a bell and an exit that come together", SOON, || {
        let after = stage.events().last().and_then(|event| event["seq"].as_u64()).unwrap_or(0);
        let task = stage.run("t", "echo built; printf '\\a'; exit 0");
        wait_until("the end of the run", SOON, || {
            messages_of_run(&stage, &task.run).iter().any(|words| words.contains("exited"))
        });
        let told = messages_of_run(&stage, &task.run);
        if told == ["started", rang, &both] { Ok((task, after)) } else { Err(told) }
    });
    let mut events = stage.agtmux();
    events.env("PI_SESSION_ID", "1").args(["task", "events", "--conversation", "--after", &after.to_string()]);
    let said = run(&mut events);
    let line: serde_json::Value = serde_json::from_str(said.text().trim()).expect("one line");
    let sentence = format!(
        "[tmux-task notification] tmux task {} (t) sent a terminal notification, then exited with code 0\nRecent output:\n  built",
        task.window
    );
    assert_eq!((&line["customType"], &line["text"]), (&json!("tmux-task-event"), &json!(sentence)));
    let details = &line["details"];
    assert_eq!((&details["source"], &details["notUserInput"]), (&json!("extension"), &json!(true)));
    assert_eq!((&details["sessionName"], &details["level"]), (&json!(stage.session), &json!("info")));
    assert_eq!(details["sessionId"], "1");
    let kinds: Vec<_> =
        details["events"].as_array().expect("events").iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["notify", "exited"]);
}

#[test]
fn a_window_that_rings_when_it_is_first_seen_has_rung() {
    let stage = Stage::new();
    stage.witness();
    // Made and rung before anybody can look.
    let window = stage.foreign_window("mine", "printf '\\a'; exec sleep 1000");
    stage.event(&window, "notify");
    stage.witness();
    assert_eq!(stage.told(&window), ["started", "sent a terminal notification"]);
    let entry = stage.entry(&window).expect("listed");
    // Whether tmux's hook has counted it depends on what else the server was about: the flag does not.
    assert_eq!(entry["bell"], true);
}

#[test]
fn the_flag_counts_where_nobody_counts() {
    let stage = Stage::new();
    stage.witness();
    // Whoever counts for us is taken away; the flag stays.
    let hooks = stage.tmux.run(&["show-hooks", "-t", &format!("={}:", stage.session)]);
    let counts = hooks.lines().find(|line| line.contains("@pi_bell_count"));
    let ours = counts.and_then(|line| line.split_whitespace().next()).expect("our hook").to_owned();
    let window = stage.foreign_window("mine", "until [ -e ring ]; do sleep 0.05; done; printf '\\a'; exec sleep 1000");
    stage.event(&window, "started");
    stage.tmux.run(&["set-hook", "-u", "-t", &format!("={}:", stage.session), &ours]);
    let cwd = stage.tmux.run(&["display-message", "-p", "-t", &window, "#{pane_current_path}"]);
    fs::write(std::path::Path::new(&cwd).join("ring"), "").expect("written");
    let notify = stage.event(&window, "notify");
    assert_eq!(notify["bell_count"], 1);
    assert_eq!(stage.entry(&window).expect("listed")["bell_count"], 0, "nobody has counted");
}
