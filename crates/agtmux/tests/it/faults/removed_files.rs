//! The state directory, the runtime directory or both are removed while the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use agtmux_testkit::agtmux::{SOON, agtmux, health, pid, soak, start, stop, world};
use agtmux_testkit::{TestWorld, wait_for, wait_until};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::{OpenConnection, runtimes};

fn runtime_dir(world: &TestWorld) -> PathBuf {
    world.dir().join("run")
}

/// Removes directories at once: a rename needs no time in which the daemon could notice.
fn remove(world: &TestWorld, dirs: &[PathBuf], nth: usize) {
    for (index, dir) in dirs.iter().enumerate() {
        let removed = world.dir().join(format!("removed-{nth}-{index}"));
        fs::rename(dir, &removed).expect("the directory exists");
        fs::remove_dir_all(&removed).expect("the directory is ours");
    }
}

/// A world with a daemon and an agent. Returns the runtime id of the agent.
fn world_with_agent() -> (TestWorld, String) {
    let world = world();
    world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    let runtime = wait_for("the agent", SOON, || {
        let mut connection = OpenConnection::new(&world.socket());
        runtimes(&connection.get("/v1/panes")).into_iter().next()
    });
    (world, runtime)
}

fn event(runtime: &str, key: &str) -> String {
    json!({"runtime_id": runtime, "source": "hook", "event_type": "running", "dedupe_key": key}).to_string()
}

/// Posts an event and returns the status of the answer.
fn post(connection: &mut OpenConnection, runtime: &str, key: &str) -> u16 {
    connection.send("POST", "/v1/events", &event(runtime, key)).expect("an answer").status
}

/// The dedupe keys of the stored events.
fn stored_keys(database: &Path) -> Vec<String> {
    let database = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("readable");
    let mut query = database.prepare("SELECT dedupe_key FROM events ORDER BY dedupe_key").expect("the table exists");
    let keys = query.query_map([], |row| row.get(0)).expect("rows");
    keys.collect::<Result<_, _>>().expect("texts")
}

fn wait_until_restored(world: &TestWorld) -> Value {
    wait_for("the restored files", SOON, || {
        let present = [world.socket(), world.state_dir().join("state.db"), world.state_dir().join("agtmuxd.lock")];
        let missing: Vec<_> = present.iter().filter(|path| !path.exists()).collect();
        if !missing.is_empty() {
            return Err(format!("{missing:?}"));
        }
        let health = health(world);
        let restored = health["components"]["files"]["detail"].as_str().is_some_and(|text| text.contains("restored"));
        if restored && health["status"] == "ok" { Ok(health) } else { Err(health.to_string()) }
    })
}

#[test]
fn removed_directories_come_back_with_all_acknowledged_events() {
    let (world, runtime) = world_with_agent();
    let (daemon, database) = (pid(&world), world.state_dir().join("state.db"));
    let choices = [vec![world.state_dir()], vec![runtime_dir(&world)], vec![world.state_dir(), runtime_dir(&world)]];
    let mut acknowledged = Vec::new();
    for round in 0..if soak() { 60 } else { 3 } {
        let mut connection = OpenConnection::new(&world.socket());
        let (before, after) = (format!("{round:03}-before"), format!("{round:03}-removed"));
        assert_eq!(post(&mut connection, &runtime, &before), 202);
        remove(&world, &choices[round % choices.len()], round);
        // Open connections continue. An event is acknowledged only if it is stored.
        if post(&mut connection, &runtime, &after) == 202 {
            acknowledged.push(after);
        }
        acknowledged.push(before);
        wait_until_restored(&world);
        assert_eq!((pid(&world), world.daemons()), (daemon, vec![daemon]), "round {round}");
        let stored = stored_keys(&database);
        let lost: Vec<&String> = acknowledged.iter().filter(|key| !stored.contains(key)).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged but not stored: {lost:?}");
    }
    stop(&world);
    start(&world);
    let stored = stored_keys(&database);
    assert!(acknowledged.iter().all(|key| stored.contains(key)), "{stored:?}");
}

#[test]
fn there_is_one_daemon_after_both_directories_were_removed_under_load() {
    let (world, _) = world_with_agent();
    for round in 0..if soak() { 30 } else { 2 } {
        thread::scope(|scope| {
            // Clients that find no socket start a daemon.
            for _ in 0..4 {
                scope.spawn(|| (0..3).for_each(|_| drop(agtmux(&world, &["list", "--json"]))));
            }
            remove(&world, &[world.state_dir(), runtime_dir(&world)], round);
        });
        wait_for("one daemon", SOON, || {
            let daemons = world.daemons();
            if daemons.len() == 1 { Ok(()) } else { Err(daemons) }
        });
        wait_until("an answer of the only daemon", SOON, || {
            let answer = agtmux(&world, &["daemon", "status", "--json"]);
            answer.code == Some(0) && world.daemons() == [pid(&world)]
        });
    }
}

#[test]
fn files_that_cannot_be_restored_are_reported_and_nothing_is_acknowledged() {
    let (world, runtime) = world_with_agent();
    let (daemon, state_dir) = (pid(&world), world.state_dir());
    let mut connection = OpenConnection::new(&world.socket());
    remove(&world, std::slice::from_ref(&state_dir), 0);
    // The rename above is atomic, but the daemon may have restored the directory already.
    wait_until("a file in the place of the directory", SOON, || {
        let _ = fs::remove_dir_all(&state_dir);
        fs::write(&state_dir, "").is_ok()
    });
    wait_for("a health report that names the directory", SOON, || {
        let health = connection.health();
        let detail = health["components"]["files"]["detail"].as_str().unwrap_or_default();
        let named = detail.contains(&*state_dir.to_string_lossy()) && health["components"]["files"]["status"] != "ok";
        if named && health["status"] == "degraded" { Ok(()) } else { Err(health.to_string()) }
    });
    let printed = agtmux(&world, &["daemon", "status"]);
    assert!(printed.text().contains("failed  files: "), "{}", printed.text());
    assert!(post(&mut connection, &runtime, "lost") >= 500, "the event cannot be stored");
    fs::remove_file(&state_dir).expect("the file is ours");
    wait_until_restored(&world);
    assert_eq!(post(&mut connection, &runtime, "kept"), 202);
    assert!(stored_keys(&state_dir.join("state.db")).contains(&"kept".to_owned()));
    assert_eq!((pid(&world), world.daemons()), (daemon, vec![daemon]));
}
