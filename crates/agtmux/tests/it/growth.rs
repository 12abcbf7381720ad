//! How much the database grows with its events, and how long a start takes with many of them.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, configure, items, list, soak, start, stop, world};
use agtmux_testkit::hook_load::HookConnection;
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// The goals. The size is that of an event with its payload and the state change that it causes.
const MAX_BYTES_PER_EVENT: u64 = 1_000;
const MAX_COLD_START: Duration = Duration::from_secs(1);

const AGENTS: usize = 4;

fn world_with_agents() -> (TestWorld, Vec<String>) {
    let world = world();
    let server = world.tmux("default");
    for n in 0..AGENTS {
        server.new_session(&format!("work{n}"), &world.fake_agent_command("claude"));
    }
    start(&world);
    let runtimes = wait_for("the agents", SOON, || {
        let listing = list(&world);
        let runtimes: Vec<String> =
            items(&listing).iter().filter_map(|item| item["runtime_id"].as_str().map(str::to_owned)).collect();
        if runtimes.len() == AGENTS { Ok(runtimes) } else { Err(listing.to_string()) }
    });
    (world, runtimes)
}

/// An event with the payload of a typical hook, which changes the state of its agent.
fn event(runtime: &str, n: usize, turn: usize) -> Value {
    let (session, call) = (format!("0198c2f4-7d3a-7c11-9a55-{n:012}"), format!("toolu_{n:020}"));
    let event_type = ["running", "waiting_input"][turn % 2];
    json!({
        "runtime_id": runtime, "source": "hook", "event_type": event_type,
        "dedupe_key": format!("{n:032x}"), "event_time": jiff::Timestamp::now(), "cwd": "/home/user1/work/project",
        "socket": "/tmp/tmux-1000/default", "pane": "%1", "pids": [1_000 + n, 999, 998], "pid_starts": [n, 5, 4],
        "payload": {
            "session_id": session, "cwd": "/home/user1/work/project", "permission_mode": "default",
            "transcript_path": format!("/home/user1/.claude/projects/-home-user1-work-project/{session}.jsonl"),
            "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": call, "duration_ms": n % 5_000,
            "tool_input": {"command": format!("cargo test -p project case_{n}"), "description": "Run one test"},
            "tool_response": {"stdout": format!("test case_{n} ... ok\n\ntest result: ok. 1 passed; finished in 0.{n}s\n"),
                              "stderr": "", "interrupted": false, "isImage": false},
        },
    })
}

fn post_events(world: &TestWorld, runtimes: &[String], count: usize) {
    thread::scope(|scope| {
        for (first, runtime) in runtimes.iter().enumerate() {
            scope.spawn(move || {
                let mut connection = HookConnection::open(&world.socket()).expect("the daemon accepts connections");
                for n in (first..count).step_by(AGENTS) {
                    let event = event(runtime, n, n / AGENTS);
                    let (status, answer) = connection.post("/v1/events", &event).expect("an answer");
                    assert_eq!(status, 202, "{answer}");
                }
            });
        }
    });
}

/// The bytes of the pages of the events and state changes, with their indexes.
fn history_bytes(database: &Path) -> u64 {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE name IN
               (SELECT name FROM sqlite_schema WHERE tbl_name IN ('events', 'transitions'))";
    let bytes: i64 = connection.query_row(sql, [], |row| row.get(0)).expect("counted");
    bytes.unsigned_abs()
}

#[test]
fn events_need_little_space_and_do_not_slow_down_a_start() {
    let count = if soak() { 200_000 } else { 3_000 };
    let (world, runtimes) = world_with_agents();
    stop(&world);
    let began = Instant::now();
    start(&world);
    let empty_start = began.elapsed();
    post_events(&world, &runtimes, count);
    stop(&world);
    let database = world.state_dir().join("state.db");
    let file_bytes = std::fs::metadata(&database).expect("the file exists").len();
    let per_event = history_bytes(&database) / count as u64;
    let began = Instant::now();
    start(&world);
    let cold_start = began.elapsed();
    println!(
        "{count} events: {} MiB in the file, {per_event} bytes per event (goal {MAX_BYTES_PER_EVENT}), start in \
         {cold_start:.2?} (goal {MAX_COLD_START:.0?}; {empty_start:.2?} without events)",
        file_bytes >> 20
    );
    assert!(per_event <= MAX_BYTES_PER_EVENT, "{per_event} bytes per event");
    if soak() {
        assert!(cold_start <= MAX_COLD_START, "{cold_start:?}");
        shrinks_to_its_limit(&world, &database);
    }
}

fn shrinks_to_its_limit(world: &TestWorld, database: &Path) {
    stop(world);
    configure(world, "[state]\nstore_mib = 16\n");
    start(world);
    let began = Instant::now();
    let size = || std::fs::metadata(database).expect("the file exists").len();
    wait_until("the file to shrink", Duration::from_secs(300), || size() <= 16 << 20);
    println!("shrunk to {} MiB in {:.1?}", size() >> 20, began.elapsed());
}
