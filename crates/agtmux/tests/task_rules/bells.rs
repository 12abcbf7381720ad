//! What rings.

use std::fs;

use agtmux_testkit::wait_until;
use serde_json::json;

use crate::agtmux::SOON;
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

#[test]
fn a_bell_and_an_exit_are_told_in_order_and_in_one_sentence() {
    let stage = Stage::new();
    let task = stage.run("t", "echo built; printf '\\a'; exit 0");
    stage.event(&task.window, "exited");
    assert_eq!(
        stage.told(&task.window),
        ["started", "sent a terminal notification", "sent a terminal notification, then exited with code 0"]
    );
    let said = stage.done(&["events", "--conversation", "--after", "0"]);
    let line: serde_json::Value = serde_json::from_str(said.text().trim()).expect("one line");
    let sentence = format!(
        "[tmux-task notification] tmux task {} (t) sent a terminal notification, then exited with code 0\nRecent output:\n  built",
        task.window
    );
    assert_eq!((&line["customType"], &line["text"]), (&json!("tmux-task-event"), &json!(sentence)));
    let details = &line["details"];
    assert_eq!((&details["source"], &details["notUserInput"]), (&json!("extension"), &json!(true)));
    assert_eq!((&details["sessionName"], &details["level"]), (&json!(stage.session), &json!("info")));
    let kinds: Vec<_> =
        details["events"].as_array().expect("events").iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["notify", "exited"]);
}
