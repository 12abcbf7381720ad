//! What cannot be stored.

use std::fs;

use agtmux_testkit::{wait_for, wait_until};
use rusqlite::Connection;
use serde_json::Value;

use crate::agtmux::SOON;
use crate::stage::Stage;

fn open_database(stage: &Stage) -> Connection {
    Connection::open(stage.world.state_dir().join("state.db")).expect("a database")
}

/// From now on the disk is full for this table.
fn make_inserts_fail(database: &Connection, table: &str) {
    let trigger = format!(
        "CREATE TRIGGER full_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
    );
    wait_until("the trigger", SOON, || database.execute_batch(&trigger).is_ok());
}

fn make_inserts_work(database: &Connection, table: &str) {
    wait_until("room again", SOON, || database.execute_batch(&format!("DROP TRIGGER IF EXISTS full_{table}")).is_ok());
}

fn events_of_task(stage: &Stage, task: &str) -> Vec<Value> {
    stage.events().into_iter().filter(|event| event["task"] == task).collect()
}

#[test]
fn a_task_that_cannot_be_written_down_is_not_started() {
    let stage = Stage::new();
    let lives = stage.run("lives", "exec sleep 1000");
    let database = open_database(&stage);
    make_inserts_fail(&database, "actions");
    let done = stage.task(&["run", "t", "--", "touch ran"]);
    assert!(done.code != Some(0) && done.stderr.contains("try:"), "{done:?}");
    let done = stage.task(&["restart", "lives"]);
    assert_ne!(done.code, Some(0), "{done:?}");
    make_inserts_work(&database, "actions");
    // The same for the file of which the one in the pane reads what it is to do.
    let (dir, away) = (stage.world.state_dir().join("tasks"), stage.world.state_dir().join("away"));
    fs::rename(&dir, &away).expect("moved");
    fs::write(&dir, "in the way").expect("written");
    let done = stage.task(&["run", "t", "--", "touch ran"]);
    assert!(done.code != Some(0) && done.stderr.contains("so it was not started"), "{done:?}");
    fs::remove_file(&dir).expect("removed");
    fs::rename(&away, &dir).expect("moved");
    assert!(!stage.file("ran").exists(), "it was not started");
    assert_eq!(stage.entry(&lives.window).expect("listed")["run_id"], lives.run.as_str(), "and nothing was replaced");
    let task = stage.run("t", "touch ran; exit 0");
    stage.event(&task.window, "exited");
    assert!(stage.file("ran").exists());
}

#[test]
fn what_could_not_be_stored_is_told_when_it_can_be_and_once() {
    let stage = Stage::new();
    let ends = stage.run("ends", "until [ -e go ]; do sleep 0.05; done; printf '\\a'; exit 4");
    let database = open_database(&stage);
    make_inserts_fail(&database, "task_events");
    fs::write(stage.file("go"), "").expect("written");
    let begun = stage.task(&["run", "begun", "--", "echo ran >>ran; exit 5"]);
    wait_until("both have ended", SOON, || {
        let list = stage.list();
        let tasks = list["tasks"].as_array().cloned().unwrap_or_default();
        // One whose window could not be given to it is gone, and was not started.
        let dead = |name: &str| tasks.iter().any(|task| task["window_name"] == name && task["dead"] == true);
        dead("ends") && (dead("begun") || begun.code != Some(0))
    });
    assert_eq!(events_of_task(&stage, "ends").len(), 1, "nothing can be told yet");
    wait_until("that is said", SOON, || {
        let status = stage.world.agtmux().args(["daemon", "status"]).output().expect("it runs");
        String::from_utf8_lossy(&status.stdout).contains("cannot be written")
    });
    make_inserts_work(&database, "task_events");
    stage.event(&ends.window, "exited");
    let ran = fs::read_to_string(stage.file("ran")).unwrap_or_default().lines().count();
    if begun.code == Some(0) {
        assert_eq!(ran, 1);
        wait_for("the end of the other", SOON, || {
            let kinds: Vec<Value> =
                events_of_task(&stage, "begun").into_iter().map(|event| event["type"].clone()).collect();
            (kinds == ["started", "exited"]).then_some(()).ok_or(kinds)
        });
    } else {
        assert_eq!((ran, events_of_task(&stage, "begun").len()), (0, 0), "{begun:?}");
    }
    stage.witness();
    let rang = "sent a terminal notification";
    assert_eq!(stage.told(&ends.window), ["started", rang, &format!("{rang}, then exited with code 4")]);
    assert!(events_of_task(&stage, "begun").len() <= 2);
}
