//! Tests that old data is erased from the disk, and that the remaining data can still be replayed.

use super::*;

/// The bytes of the database and its write-ahead log.
fn disk_bytes(dir: &std::path::Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).expect("readable").flatten();
    files.flat_map(|file| std::fs::read(file.path()).unwrap_or_default()).collect()
}

/// Whether any part of this payload is on the disk. The parts may be anywhere in the database files.
fn is_on_disk(dir: &std::path::Path, payload: &[u8]) -> bool {
    let disk = disk_bytes(dir);
    let parts: Vec<&[u8]> = payload.chunks(256).filter_map(|chunk| chunk.get(..24)).collect();
    assert!(!parts.is_empty(), "the payload is too short for this test");
    disk.windows(24).any(|window| parts.contains(&window))
}

/// All payloads in the database, in their stored form.
fn stored_payloads(dir: &std::path::Path) -> Vec<Vec<u8>> {
    let connection = rusqlite::Connection::open(dir.join("state.db")).expect("opened");
    let mut statement = connection.prepare("SELECT payload FROM events WHERE payload IS NOT NULL").expect("valid");
    let payloads = statement.query_map([], |row| row.get(0)).expect("readable");
    payloads.collect::<rusqlite::Result<_>>().expect("readable")
}

fn event_with_body(key: &str, body: String) -> IncomingEvent {
    IncomingEvent { body: Some(body), ..event("running", key) }
}

/// Makes all stored rows older, as if the daemon had been stopped for a while.
fn age(dir: &std::path::Path, hours: i64) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(dir.join("state.db")).expect("opened");
    // The test itself must not leave copies on the disk.
    connection.pragma_update(None, "secure_delete", true).expect("set");
    for (table, column) in
        [("events", "ingested_at"), ("engine_inputs", "at"), ("transitions", "at"), ("checkpoints", "at")]
    {
        let sql = format!("UPDATE {table} SET {column} = {column} - ?1");
        connection.execute(&sql, [hours * 3_600_000_000]).expect("written");
    }
    connection
}

fn count(dir: &std::path::Path, what: &str) -> i64 {
    let connection = rusqlite::Connection::open(dir.join("state.db")).expect("opened");
    connection.query_row(&format!("SELECT count(*) FROM {what}"), [], |row| row.get(0)).expect("counted")
}

#[test]
fn a_payload_older_than_its_retention_is_gone_from_database_and_wal() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        let random = |words: usize| (0..words).map(|_| uuid::Uuid::new_v4().to_string()).collect::<String>();
        let body = |words| format!("{{\"a\":\"{}\"}}", random(words));
        engine.send(event_with_body("short", body(2))).await.expect("accepted");
        // A payload that needs pages of its own.
        engine.send(event_with_body("long", body(1000))).await.expect("accepted");
        let path = engine.dir.path().to_owned();
        let payloads = stored_payloads(&path);
        assert_eq!(payloads.len(), 2);
        assert!(payloads.iter().all(|payload| is_on_disk(&path, payload)), "the payloads are on the disk");
        let dir = engine.stop().await;
        drop(age(&path, 8 * 24));

        let engine = TestEngine::start(dir);
        wait_until("the purge", || count(&path, "events WHERE payload IS NOT NULL") == 0).await;
        let is_any_left = || payloads.iter().any(|payload| is_on_disk(&path, payload));
        wait_until("the payloads to be gone from the bytes", || !is_any_left()).await;
        assert_eq!(count(&path, "events"), 2, "metadata is kept longer");
        engine.set_pane("default", 10, Some(50)).await;
        let again = engine.send(event("running", "short")).await.expect("accepted");
        assert_eq!(again.status, EventReceiptStatus::Duplicate);
        assert_replays(&engine.database());
    });
}

#[test]
fn after_the_metadata_retention_the_rest_replays_from_the_checkpoint() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        for n in 0..20 {
            let state = ["running", "waiting_input"][n % 2];
            engine.send(event(state, &format!("old{n}"))).await.expect("accepted");
        }
        let (runtime, state) = engine.only_agent();
        let path = engine.dir.path().to_owned();
        let dir = engine.stop().await;
        drop(age(&path, 15 * 24));

        let engine = TestEngine::start(dir);
        wait_until("the purge", || count(&path, "events") == 0).await;
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent(), (runtime.clone(), state), "the current state is kept");
        let covered = "engine_inputs WHERE input_seq <= (SELECT min(input_seq) FROM checkpoints)";
        wait_until("the end of the purge", || count(&path, covered) == 0 && count(&path, "transitions") == 1).await;
        assert_replays(&engine.database());
        engine.send(event("completed", "new")).await.expect("accepted");
        let engine = engine.restart().await;
        assert_eq!(engine.only_agent(), (runtime, State::Completed));
        assert_replays(&engine.database());
    });
}

/// Simulates a daemon that ran for a long time and wrote checkpoints only at its start and at the purge.
#[test]
fn a_purge_keeps_everything_that_a_replay_needs() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(event("idle", "old")).await.expect("accepted");
        let (path, database) = (engine.dir.path().to_owned(), engine.database());
        let dir = engine.stop().await;
        let connection = age(&path, 15 * 24);
        // Keep only the first checkpoint.
        let sql = "DELETE FROM checkpoints WHERE input_seq > (SELECT min(input_seq) FROM checkpoints)";
        connection.execute(sql, []).expect("written");
        drop(connection);
        assert_replays(&database);
        let engine = TestEngine::start(dir);
        wait_until("the purge", || count(&path, "events") == 0).await;
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Idle);
        assert_replays(&database);
    });
}
