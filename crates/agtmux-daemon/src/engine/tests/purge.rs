//! What is too old is gone from the disk, and the rest can still be replayed.

use super::*;

const MARK: &str = "a-phrase-that-stands-nowhere-else";

/// Everything that is on the disk: the database and its log.
fn on_disk(dir: &std::path::Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).expect("readable").flatten();
    files.flat_map(|file| std::fs::read(file.path()).unwrap_or_default()).collect()
}

fn is_on_disk(dir: &std::path::Path, text: &str) -> bool {
    on_disk(dir).windows(text.len()).any(|window| window == text.as_bytes())
}

fn carrying(key: &str, payload: String) -> IncomingEvent {
    IncomingEvent { payload: Some(payload), ..event("running", key) }
}

/// Makes everything that is stored older, as if the daemon had slept.
fn age(dir: &std::path::Path, hours: i64) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(dir.join("state.db")).expect("opened");
    // The test itself must not leave anything behind.
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
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        world.send(carrying("short", format!("{{\"a\":\"{MARK}\"}}"))).await.expect("taken");
        // One that needs pages of its own.
        world.send(carrying("long", format!("{{\"a\":\"{}\"}}", MARK.repeat(2000)))).await.expect("taken");
        let path = world.dir.path().to_owned();
        assert!(is_on_disk(&path, MARK), "it is found where it is");
        let dir = world.stop().await;
        drop(age(&path, 8 * 24));

        let world = TestEngine::start(dir);
        until("the purge", || count(&path, "events WHERE raw_payload IS NOT NULL") == 0).await;
        until("the marker to be gone from the bytes", || !is_on_disk(&path, MARK)).await;
        assert_eq!(count(&path, "events"), 2, "what is known about them is kept longer");
        world.pane("default", 10, Some(50)).await;
        let again = world.send(event("running", "short")).await.expect("known");
        assert_eq!(again.status, EventReceiptStatus::Duplicate);
        assert_replays(&world.database());
    });
}

#[test]
fn after_the_retention_of_metadata_the_rest_still_replays_from_the_checkpoint() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        for n in 0..20 {
            let state = ["running", "waiting_input"][n % 2];
            world.send(event(state, &format!("old{n}"))).await.expect("taken");
        }
        let (runtime, state) = world.only();
        let path = world.dir.path().to_owned();
        let dir = world.stop().await;
        drop(age(&path, 15 * 24));

        let world = TestEngine::start(dir);
        until("the purge", || count(&path, "events") == 0).await;
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only(), (runtime.clone(), state), "a state is not metadata: it holds");
        assert_eq!(count(&path, "engine_inputs WHERE input_seq <= (SELECT min(input_seq) FROM checkpoints)"), 0);
        assert_eq!(count(&path, "transitions"), 1, "how the agent came to its state is still known");
        assert_replays(&world.database());
        world.send(event("completed", "new")).await.expect("taken");
        let world = world.restart().await;
        assert_eq!(world.only(), (runtime, State::Completed));
        assert_replays(&world.database());
    });
}

/// A long quiet life: no checkpoint but those of the start and of the purge.
#[test]
fn a_purge_in_the_middle_of_a_life_loses_nothing_that_a_replay_needs() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        world.send(event("idle", "old")).await.expect("taken");
        let (path, database) = (world.dir.path().to_owned(), world.database());
        let dir = world.stop().await;
        let connection = age(&path, 15 * 24);
        // As if no checkpoint had been written since.
        let sql = "DELETE FROM checkpoints WHERE input_seq > (SELECT min(input_seq) FROM checkpoints)";
        connection.execute(sql, []).expect("written");
        drop(connection);
        assert_replays(&database);
        let world = TestEngine::start(dir);
        until("the purge", || count(&path, "events") == 0).await;
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Idle);
        assert_replays(&database);
    });
}
