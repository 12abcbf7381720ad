//! Commands that follow tasks.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use agtmux_testkit::agtmux::{SOON, agtmux, kill, pid, start, stop};
use agtmux_testkit::task_fixture::TaskFixture;
use agtmux_testkit::{ChildGuard, wait_for, wait_until};
use rusqlite::Connection;
use serde_json::Value;

/// Starts `agtmux task …`. Returns the process and the file with its output.
fn start_follower(fixture: &TaskFixture, args: &[&str]) -> (ChildGuard, PathBuf) {
    let file = fixture.world.dir().join(format!("output-of-{}", args[0]));
    let out = fs::File::create(&file).expect("the world is writable");
    let mut command = fixture.agtmux();
    command.arg("task").args(args).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    (ChildGuard::start(&mut command), file)
}

fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

#[test]
fn events_follow_is_complete_and_has_no_duplicates_over_restarts() {
    let fixture = TaskFixture::new();
    let (_follower, file) = start_follower(&fixture, &["events", "--follow", "--json", "--after", "0"]);
    let received = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let up_to_date = || {
        wait_for("all events", SOON, || {
            let (received, stored) = (seqs(&received()), seqs(&fixture.events()));
            if received == stored && !stored.is_empty() { Ok(()) } else { Err((received, stored)) }
        });
    };
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done; printf '\\a'; exit 3");
    let (one, two) = (fixture.run("one", &wait("first")), fixture.run("two", &wait("second")));
    up_to_date();
    // One task ends while the daemon is dead; the follower starts a new daemon.
    kill(pid(&fixture.world));
    fs::write(fixture.file("first"), "").expect("written");
    let ended = |window: &str| received().iter().any(|event| event["window_id"] == window && event["type"] == "exited");
    wait_until("the end of the first", SOON, || ended(&one.window));
    up_to_date();
    agtmux(&fixture.world, &["daemon", "restart"]);
    fs::write(fixture.file("second"), "").expect("written");
    wait_until("the end of the second", SOON, || ended(&two.window));
    fixture.run("three", "exit 0");
    fixture.run_marker_task();
    up_to_date();
    let kinds: Vec<Value> = received().iter().take(6).map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["started", "started", "notify", "exited", "notify", "exited"]);
}

#[test]
fn logs_follow_shows_output_until_the_task_ends() {
    let fixture = TaskFixture::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done");
    let line = format!("echo one; {}; echo two; {}; printf three; exit 4", wait("go"), wait("end"));
    fixture.run("t", &line);
    wait_until("the first line", SOON, || fixture.task_ok(&["logs", "t"]).text() == "one\n");
    let (mut follower, file) = start_follower(&fixture, &["logs", "t", "-f"]);
    let shows = |text: &str| {
        wait_for(&format!("{text:?}"), SOON, || {
            let output = fs::read_to_string(&file).unwrap_or_default();
            if output == text { Ok(()) } else { Err(output) }
        });
    };
    shows("one\n");
    fs::write(fixture.file("go"), "").expect("written");
    shows("one\ntwo\n");
    fs::write(fixture.file("end"), "").expect("written");
    shows("one\ntwo\nthree\n");
    assert_eq!(follower.wait().expect("the follower ended").code(), Some(0));
}

#[test]
fn logs_follow_shows_each_line_of_a_busy_task_once() {
    let fixture = TaskFixture::new();
    fixture.run("t", "n=0; while [ ! -e end ]; do n=$((n + 1)); echo line $n; done; printf last");
    wait_until("the first output", SOON, || !fixture.task_ok(&["logs", "t", "--lines", "1"]).text().is_empty());
    for _ in 0..3 {
        let (follower, file) = start_follower(&fixture, &["logs", "t", "-f", "--lines", "5"]);
        let output = || fs::read_to_string(&file).unwrap_or_default();
        wait_until("further lines", SOON, || output().lines().count() > 500);
        drop(follower);
        let text = output();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let numbers: Vec<u64> = whole.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok()).collect();
        let first = numbers.first().copied().expect("lines");
        let expected: Vec<u64> = (first..).take(numbers.len()).collect();
        assert!(numbers == expected, "{} lines from {first} on", numbers.len());
    }
    fs::write(fixture.file("end"), "").expect("written");
}

#[test]
fn events_reads_all_pages() {
    let fixture = TaskFixture::new();
    let task = fixture.run("t", "exit 0");
    fixture.event(&task.window, "exited");
    stop(&fixture.world);
    let database = Connection::open(fixture.world.state_dir().join("state.db")).expect("opened");
    let more = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2100)
        INSERT INTO task_events (seq, at, socket, session, task, run_id, document)
        SELECT last + n, at, socket, session, task, run_id, json_set(document, '$.seq', last + n)
        FROM n, (SELECT max(seq) AS last FROM task_events), (SELECT * FROM task_events ORDER BY seq DESC LIMIT 1)";
    database.execute_batch(more).expect("stored");
    drop(database);
    start(&fixture.world);
    let all = fixture.events();
    assert_eq!(all.len(), 2102);
    let after = all[1]["seq"].to_string();
    assert_eq!(fixture.task_ok(&["events", "--after", &after]).text().lines().count(), 2100);
    assert_eq!(fixture.task_ok(&["events"]).text().lines().count(), 20, "without --after only the newest events");
}
