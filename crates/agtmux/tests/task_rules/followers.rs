//! Those who follow tasks by commands.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use agtmux_testkit::{ChildGuard, wait_for, wait_until};
use rusqlite::Connection;
use serde_json::Value;

use crate::agtmux::{SOON, agtmux, kill, pid, start, stop};
use crate::stage::Stage;

/// `agtmux task …`, and the file that has what it prints.
fn start_follower(stage: &Stage, args: &[&str]) -> (ChildGuard, PathBuf) {
    let file = stage.world.dir().join(format!("said-by-{}", args[0]));
    let out = fs::File::create(&file).expect("the world is writable");
    let mut command = stage.agtmux();
    command.arg("task").args(args).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    (ChildGuard::start(&mut command), file)
}

fn seqs(events: &[Value]) -> Vec<u64> {
    events.iter().filter_map(|event| event["seq"].as_u64()).collect()
}

#[test]
fn whoever_follows_events_misses_nothing_and_hears_nothing_twice_over_restarts() {
    let stage = Stage::new();
    let (_follower, file) = start_follower(&stage, &["events", "--follow", "--json", "--after", "0"]);
    let heard = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let up_to_date = || {
        wait_for("all that was told", SOON, || {
            let (heard, told) = (seqs(&heard()), seqs(&stage.events()));
            if heard == told && !told.is_empty() { Ok(()) } else { Err((heard, told)) }
        });
    };
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done; printf '\\a'; exit 3");
    let (one, two) = (stage.run("one", &wait("first")), stage.run("two", &wait("second")));
    up_to_date();
    // One ends while nobody is there, and whoever follows gets the daemon back.
    kill(pid(&stage.world));
    fs::write(stage.file("first"), "").expect("written");
    let ended = |window: &str| heard().iter().any(|event| event["window_id"] == window && event["type"] == "exited");
    wait_until("the end of the first", SOON, || ended(&one.window));
    up_to_date();
    agtmux(&stage.world, &["daemon", "restart"]);
    fs::write(stage.file("second"), "").expect("written");
    wait_until("the end of the second", SOON, || ended(&two.window));
    stage.run("three", "exit 0");
    stage.witness();
    up_to_date();
    let kinds: Vec<Value> = heard().iter().take(6).map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, ["started", "started", "notify", "exited", "notify", "exited"]);
}

#[test]
fn what_a_live_task_writes_is_followed_to_its_end() {
    let stage = Stage::new();
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.05; done");
    let line = format!("echo one; {}; echo two; {}; printf three; exit 4", wait("go"), wait("end"));
    stage.run("t", &line);
    wait_until("its first line", SOON, || stage.done(&["logs", "t"]).text() == "one\n");
    let (mut follower, file) = start_follower(&stage, &["logs", "t", "-f"]);
    let shows = |text: &str| {
        wait_for(&format!("{text:?}"), SOON, || {
            let shown = fs::read_to_string(&file).unwrap_or_default();
            if shown == text { Ok(()) } else { Err(shown) }
        });
    };
    shows("one\n");
    fs::write(stage.file("go"), "").expect("written");
    shows("one\ntwo\n");
    fs::write(stage.file("end"), "").expect("written");
    shows("one\ntwo\nthree\n");
    assert_eq!(follower.wait().expect("it has ended").code(), Some(0));
}

#[test]
fn of_a_task_that_never_stops_writing_each_line_is_shown_once() {
    let stage = Stage::new();
    stage.run("t", "n=0; while [ ! -e end ]; do n=$((n + 1)); echo line $n; done; printf last");
    wait_until("it writes", SOON, || !stage.done(&["logs", "t", "--lines", "1"]).text().is_empty());
    for _ in 0..3 {
        let (follower, file) = start_follower(&stage, &["logs", "t", "-f", "--lines", "5"]);
        let shown = || fs::read_to_string(&file).unwrap_or_default();
        wait_until("it goes on", SOON, || shown().lines().count() > 500);
        drop(follower);
        let text = shown();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let numbers: Vec<u64> = whole.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok()).collect();
        let first = numbers.first().copied().expect("lines");
        let expected: Vec<u64> = (first..).take(numbers.len()).collect();
        assert!(numbers == expected, "{} lines from {first} on", numbers.len());
    }
    fs::write(stage.file("end"), "").expect("written");
}

#[test]
fn more_events_than_one_answer_has_are_all_shown() {
    let stage = Stage::new();
    let task = stage.run("t", "exit 0");
    stage.event(&task.window, "exited");
    stop(&stage.world);
    let database = Connection::open(stage.world.state_dir().join("state.db")).expect("opened");
    let more = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2100)
        INSERT INTO task_events (seq, at, socket, session, task, run_id, document)
        SELECT last + n, at, socket, session, task, run_id, json_set(document, '$.seq', last + n)
        FROM n, (SELECT max(seq) AS last FROM task_events), (SELECT * FROM task_events ORDER BY seq DESC LIMIT 1)";
    database.execute_batch(more).expect("stored");
    drop(database);
    start(&stage.world);
    let all = stage.events();
    assert_eq!(all.len(), 2102);
    let after = all[1]["seq"].to_string();
    assert_eq!(stage.done(&["events", "--after", &after]).text().lines().count(), 2100);
    assert_eq!(stage.done(&["events"]).text().lines().count(), 20, "the newest, where nobody says after which");
}
