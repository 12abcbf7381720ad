//! A store that is locked for a while.

use std::fs;

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::http::SseClient;
use agtmux_testkit::task_fixture::{TaskFixture, short_message};
use agtmux_testkit::wait_until;
use rusqlite::Connection;

/// How often the daemon has logged that it could not store task events.
fn store_failures(fixture: &TaskFixture) -> usize {
    let log = agtmux(&fixture.world, &["daemon", "logs", "--lines", "1000"]).text();
    log.lines().filter(|line| line.contains("cannot store task events")).count()
}

/// Holds a write lock on the database until it is dropped.
struct DatabaseLock(Connection);

impl DatabaseLock {
    fn new(fixture: &TaskFixture) -> Self {
        let database = Connection::open(fixture.world.state_dir().join("state.db")).expect("opened");
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
fn events_are_reported_once_after_the_store_is_unlocked() {
    let fixture = TaskFixture::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done");
    let task = fixture.run("t", &format!("{}; printf '\\a'; {}; exit 4", wait("ring"), wait("end")));
    fixture.event(&task.window, "started");
    let events = SseClient::open(&fixture.world.socket(), "?agent=task", None);
    events.snapshot();
    for (file, kind) in [("ring", "notify"), ("end", "exited")] {
        let (locked, before) = (DatabaseLock::new(&fixture), store_failures(&fixture));
        fs::write(fixture.file(file), "").expect("written");
        wait_until(&format!("'{kind}' cannot be stored"), SOON, || store_failures(&fixture) > before);
        assert!(
            fixture.events().iter().all(|event| event["type"] != kind),
            "an event was published before it was stored"
        );
        drop(locked);
        fixture.event(&task.window, kind);
    }
    fixture.run_marker_task();
    let rang = "sent a terminal notification";
    assert_eq!(fixture.event_messages(&task.window), ["started", rang, "exited with code 4"]);
    let received = events.until("the exit of the marker task", |event| event.data["task"]["exit_code"] == 9);
    let of_task =
        received.iter().map(|event| &event.data["task"]).filter(|task_event| task_event["window_id"] == task.window);
    assert_eq!(of_task.map(short_message).collect::<Vec<_>>(), [rang, "exited with code 4"]);
}
