//! A store that rejects writes.

use std::fs;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{wait_for, wait_until};
use rusqlite::Connection;
use serde_json::Value;

fn open_database(fixture: &TaskFixture) -> Connection {
    Connection::open(fixture.world.state_dir().join("state.db")).expect("a database")
}

/// Makes inserts into this table fail as if the disk were full.
fn make_inserts_fail(database: &Connection, table: &str) {
    let trigger = format!(
        "CREATE TRIGGER full_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
    );
    wait_until("the trigger", SOON, || database.execute_batch(&trigger).is_ok());
}

fn make_inserts_work(database: &Connection, table: &str) {
    wait_until("the removal of the trigger", SOON, || {
        database.execute_batch(&format!("DROP TRIGGER IF EXISTS full_{table}")).is_ok()
    });
}

fn events_of_task(fixture: &TaskFixture, task: &str) -> Vec<Value> {
    fixture.events().into_iter().filter(|event| event["task"] == task).collect()
}

#[test]
fn a_task_that_cannot_be_stored_is_not_started() {
    let fixture = TaskFixture::new();
    let live_task = fixture.run("lives", "exec sleep 1000");
    let database = open_database(&fixture);
    make_inserts_fail(&database, "actions");
    let done = fixture.task(&["run", "--replace", "t", "--", "touch ran"]);
    assert!(done.code != Some(0) && done.stderr.contains("try:"), "{done:?}");
    let done = fixture.task(&["restart", "lives"]);
    assert_ne!(done.code, Some(0), "{done:?}");
    make_inserts_work(&database, "actions");
    // The task is also not started if the file with its command cannot be written.
    let (dir, away) = (fixture.world.state_dir().join("tasks"), fixture.world.state_dir().join("away"));
    fs::rename(&dir, &away).expect("moved");
    fs::write(&dir, "in the way").expect("written");
    let done = fixture.task(&["run", "--replace", "t", "--", "touch ran"]);
    assert!(done.code != Some(0) && done.stderr.contains("the task was not started"), "{done:?}");
    fs::remove_file(&dir).expect("removed");
    fs::rename(&away, &dir).expect("moved");
    assert!(!fixture.file("ran").exists(), "the task was not started");
    assert_eq!(
        fixture.entry(&live_task.window).expect("listed")["run_id"],
        live_task.run.as_str(),
        "the running task was not replaced"
    );
    let task = fixture.run("t", "touch ran; exit 0");
    fixture.event(&task.window, "exited");
    assert!(fixture.file("ran").exists());
}

#[test]
fn unstored_events_are_reported_once_when_the_store_works_again() {
    let fixture = TaskFixture::new();
    let ends = fixture.run("ends", "until [ -e go ]; do sleep 0.05; done; printf '\\a'; exit 4");
    let database = open_database(&fixture);
    make_inserts_fail(&database, "task_events");
    fs::write(fixture.file("go"), "").expect("written");
    let second_run = fixture.task(&["run", "--replace", "begun", "--", "echo ran >>ran; exit 5"]);
    wait_until("both tasks to end", SOON, || {
        let list = fixture.list();
        let tasks = list["tasks"].as_array().cloned().unwrap_or_default();
        // The second task has ended, or `run` failed and did not start it.
        let dead = |name: &str| tasks.iter().any(|task| task["window_name"] == name && task["dead"] == true);
        dead("ends") && (dead("begun") || second_run.code != Some(0))
    });
    assert_eq!(events_of_task(&fixture, "ends").len(), 1, "no event can be stored yet");
    wait_until("the failure in `daemon status`", SOON, || {
        let status = fixture.world.agtmux().args(["daemon", "status"]).output().expect("agtmux starts");
        String::from_utf8_lossy(&status.stdout).contains("cannot be written")
    });
    make_inserts_work(&database, "task_events");
    fixture.event(&ends.window, "exited");
    let ran = fs::read_to_string(fixture.file("ran")).unwrap_or_default().lines().count();
    if second_run.code == Some(0) {
        assert_eq!(ran, 1);
        wait_for("the exit of the other task", SOON, || {
            let kinds: Vec<Value> =
                events_of_task(&fixture, "begun").into_iter().map(|event| event["type"].clone()).collect();
            (kinds == ["started", "exited"]).then_some(()).ok_or(kinds)
        });
    } else {
        assert_eq!((ran, events_of_task(&fixture, "begun").len()), (0, 0), "{second_run:?}");
    }
    fixture.run_marker_task();
    let rang = "sent a terminal notification";
    assert_eq!(fixture.event_messages(&ends.window), ["started", rang, &format!("{rang}, then exited with code 4")]);
    assert!(events_of_task(&fixture, "begun").len() <= 2);
}
