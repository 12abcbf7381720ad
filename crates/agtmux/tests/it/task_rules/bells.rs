//! Terminal bells.

use std::fs;

use agtmux_testkit::agtmux::{SOON, run};
use agtmux_testkit::task_fixture::{TaskFixture, short_message};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::json;

#[test]
fn every_bell_is_counted_while_the_tmux_flag_stays_set() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "for n in 1 2 3; do printf '\\a'; until [ -e go$n ]; do sleep 0.05; done; done; printf '\\a\\a\\a'; exec sleep 1000");
    for n in 1..=3 {
        let notify = fixture.nth_event(&task.window, "notify", n);
        assert_eq!(
            (&notify["bell_count"], short_message(&notify).as_str()),
            (&json!(n), "sent a terminal notification")
        );
        fs::write(fixture.file(&format!("go{n}")), "").expect("written");
    }
    wait_until("three bells in one write", SOON, || {
        fixture.entry(&task.window).is_some_and(|entry| entry["bell_count"] == 6)
    });
    assert_eq!(fixture.nth_event(&task.window, "notify", 4)["bell_count"], 6);
    assert_eq!(fixture.nth_event(&task.window, "notify", 1)["level"], "info");
}

#[test]
fn a_bell_in_a_window_made_without_agtmux_is_reported() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    let window =
        fixture.unmanaged_window("mine", "until [ -e ring ]; do sleep 0.05; done; printf '\\a'; exec sleep 1000");
    fixture.event(&window, "started");
    let cwd = fixture.tmux.run(&["display-message", "-p", "-t", &window, "#{pane_current_path}"]);
    fs::write(std::path::Path::new(&cwd).join("ring"), "").expect("written");
    fixture.event(&window, "notify");
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&window), ["started", "sent a terminal notification"]);
}

fn messages_of_run(fixture: &TaskFixture, run: &str) -> Vec<String> {
    fixture.events().iter().filter(|event| event["run_id"] == run).map(short_message).collect()
}

#[test]
fn a_bell_before_the_exit_is_reported_in_one_message() {
    let fixture = TaskFixture::new();
    let rang = "sent a terminal notification";
    let both = format!("{rang}, then exited with code 0");
    // On a busy machine the exit may come too late to be joined with the bell, so try again.
    let (task, after) = wait_for("a bell joined with the exit", SOON, || {
        let after = fixture.events().last().and_then(|event| event["seq"].as_u64()).unwrap_or(0);
        let task = fixture.run("t", "echo built; printf '\\a'; exit 0");
        wait_until("the end of the run", SOON, || {
            messages_of_run(&fixture, &task.run).iter().any(|words| words.contains("exited"))
        });
        let messages = messages_of_run(&fixture, &task.run);
        if messages == ["started", rang, &both] { Ok((task, after)) } else { Err(messages) }
    });
    let mut events = fixture.agtmux();
    events.env("PI_SESSION_ID", "1").args(["task", "events", "--conversation", "--after", &after.to_string()]);
    let output = run(&mut events);
    let line: serde_json::Value = serde_json::from_str(output.text().trim()).expect("one line");
    let sentence = format!(
        "[tmux-task notification] tmux task {} (t) sent a terminal notification, then exited with code 0\nRecent output:\n  built",
        task.window
    );
    assert_eq!((&line["customType"], &line["text"]), (&json!("tmux-task-event"), &json!(sentence)));
    let details = &line["details"];
    assert_eq!((&details["source"], &details["notUserInput"]), (&json!("extension"), &json!(true)));
    assert_eq!((&details["sessionName"], &details["level"]), (&json!(fixture.session), &json!("info")));
    assert_eq!(details["sessionId"], "1");
    let kinds: Vec<_> =
        details["events"].as_array().expect("events").iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["notify", "exited"]);
}

#[test]
fn a_bell_before_the_first_listing_is_reported() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    // The window is created and rings before the daemon lists it.
    let window = fixture.unmanaged_window("mine", "printf '\\a'; exec sleep 1000");
    fixture.event(&window, "notify");
    fixture.run_marker_task();
    assert_eq!(fixture.event_messages(&window), ["started", "sent a terminal notification"]);
    let entry = fixture.entry(&window).expect("listed");
    // The bell hook may miss a bell in a new window; the flag does not.
    assert_eq!(entry["bell"], true);
}

#[test]
fn the_tmux_flag_counts_when_the_bell_hook_is_missing() {
    let fixture = TaskFixture::new();
    fixture.run_marker_task();
    // Remove the hook that counts bells; the flag stays.
    let hooks = fixture.tmux.run(&["show-hooks", "-t", &format!("={}:", fixture.session)]);
    let counts = hooks.lines().find(|line| line.contains("@pi_bell_count"));
    let ours = counts.and_then(|line| line.split_whitespace().next()).expect("our hook").to_owned();
    let window =
        fixture.unmanaged_window("mine", "until [ -e ring ]; do sleep 0.05; done; printf '\\a'; exec sleep 1000");
    fixture.event(&window, "started");
    fixture.tmux.run(&["set-hook", "-u", "-t", &format!("={}:", fixture.session), &ours]);
    let cwd = fixture.tmux.run(&["display-message", "-p", "-t", &window, "#{pane_current_path}"]);
    fs::write(std::path::Path::new(&cwd).join("ring"), "").expect("written");
    let notify = fixture.event(&window, "notify");
    assert_eq!(notify["bell_count"], 1);
    assert_eq!(fixture.entry(&window).expect("listed")["bell_count"], 0, "the hook is gone, so tmux counted nothing");
}
