//! A store that refuses for a while.

use std::fs;

use agtmux_testkit::wait_until;
use rusqlite::Connection;

use crate::agtmux::{SOON, agtmux};
use crate::http::Events;
use crate::stage::{Stage, short};

/// How often the daemon has said that it could not store what happened to tasks.
fn store_failures(stage: &Stage) -> usize {
    let said = agtmux(&stage.world, &["daemon", "logs", "--lines", "1000"]).text();
    said.lines().filter(|line| line.contains("what happened to tasks could not be stored")).count()
}

/// Nobody else can write until this is dropped.
struct DatabaseLock(Connection);

impl DatabaseLock {
    fn new(stage: &Stage) -> Self {
        let database = Connection::open(stage.world.state_dir().join("state.db")).expect("opened");
        database.busy_timeout(SOON).expect("taken");
        database.execute_batch("BEGIN IMMEDIATE").expect("locked");
        Self(database)
    }
}

impl Drop for DatabaseLock {
    fn drop(&mut self) {
        self.0.execute_batch("ROLLBACK").expect("unlocked");
    }
}

#[test]
fn what_could_not_be_stored_is_told_later_and_once() {
    let stage = Stage::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done");
    let task = stage.run("t", &format!("{}; printf '\\a'; {}; exit 4", wait("ring"), wait("end")));
    stage.event(&task.window, "started");
    let events = Events::open(&stage.world.socket(), "?agent=task", None);
    events.snapshot();
    for (file, kind) in [("ring", "notify"), ("end", "exited")] {
        let (locked, before) = (DatabaseLock::new(&stage), store_failures(&stage));
        fs::write(stage.file(file), "").expect("written");
        wait_until(&format!("'{kind}' cannot be stored"), SOON, || store_failures(&stage) > before);
        assert!(stage.events().iter().all(|event| event["type"] != kind), "told before it was stored");
        drop(locked);
        stage.event(&task.window, kind);
    }
    stage.witness();
    let rang = "sent a terminal notification";
    assert_eq!(stage.told(&task.window), ["started", rang, "exited with code 4"]);
    let seen = events.until("what came later", |event| event.data["task"]["exit_code"] == 9);
    let of_task = seen.iter().map(|event| &event.data["task"]).filter(|news| news["window_id"] == task.window);
    assert_eq!(of_task.map(short).collect::<Vec<_>>(), [rang, "exited with code 4"]);
}
