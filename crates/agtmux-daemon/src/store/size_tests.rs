//! The database stays within its limit, its file shrinks, and a start does not read the history.

use std::time::Duration;

use agtmux_core::evidence::Source;
use agtmux_core::ordering::OrderKey;
use agtmux_testkit::wait_until;

use super::*;

const MIB: u64 = 1 << 20;
/// How long the writer may take to delete rows and to return pages, on a busy machine.
const SHRINK_TIME: Duration = Duration::from_secs(30);

fn in_temp<T>(test: impl AsyncFnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(test(&dir.path().join("state.db")))
}

/// Text that does not compress to less than half.
fn random_text(bytes: usize) -> String {
    let words = std::iter::repeat_with(|| uuid::Uuid::new_v4().simple().to_string());
    words.take(bytes.div_ceil(32)).collect()
}

/// An event that arrived `second` seconds after the epoch.
fn put_event(second: i64, body: Option<String>) -> StoreChange {
    let at = Timestamp::from_second(second).expect("in range");
    let event_id = format!("{second:032}");
    StoreChange::PutEvent {
        event: Box::new(EventRow {
            order: OrderKey { source_seq: None, event_time: at, ingested_at: at, event_id: event_id.clone() },
            runtime: Some(RuntimeId::from_stored("00000000-0000-5000-8000-000000000001".to_owned())),
            origin: None,
            event_type: "running".into(),
            source: Source::Hook,
            source_event_id: None,
            dedupe_key: event_id.clone(),
            content_hash: event_id,
            bind_failure: None,
            sender: None,
        }),
        body,
    }
}

async fn fill(store: &Store, events: std::ops::Range<i64>, bytes_each: usize) {
    let events: Vec<i64> = events.collect();
    for chunk in events.chunks(256) {
        let changes = chunk.iter().map(|second| put_event(*second, Some(random_text(bytes_each)))).collect();
        store.commit(changes).await.expect("written");
    }
}

/// Limits the size of the database, but not the age of its rows.
fn limit(max_bytes: u64) -> StoreChange {
    StoreChange::Purge { payloads_before: Timestamp::MIN, all_before: Timestamp::MIN, max_bytes }
}

fn count(path: &Path, what: &str) -> i64 {
    let connection = open_reader(path).expect("opened");
    connection.query_row(&format!("SELECT count(*) FROM {what}"), [], |row| row.get(0)).expect("counted")
}

fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file exists").len()
}

#[test]
fn above_its_limit_the_database_loses_its_oldest_events_and_the_file_shrinks() {
    for (events, bytes_each) in [(1_000, 8_000), (12_000, 300)] {
        in_temp(async |path| {
            let (store, _) = Store::open(path).expect("opened");
            add_transitions(path, 500, 500);
            fill(&store, 0..events, bytes_each).await;
            let before = store.stats().size();
            assert!(before.used_bytes > 3 * MIB, "{before:?}");
            store.commit(vec![limit(2 * MIB)]).await.expect("written");
            // Some free pages stay in the file.
            let is_small = || file_bytes(path) <= 2 * MIB + MIB / 4 && store.stats().size().used_bytes <= 2 * MIB;
            wait_until("the file to shrink", SHRINK_TIME, is_small);
            let reader = open_reader(path).expect("opened");
            let body = |second: i64| events::body_of(&reader, &format!("{second:032}")).expect("readable");
            assert_eq!(body(0), None, "the oldest event is gone");
            assert!(body(events - 1).is_some_and(|body| body.len() >= bytes_each), "the newest payload is kept");
            let kept = count(path, "events WHERE payload IS NOT NULL");
            assert!(kept > events / 5, "only {kept} of {events} payloads are kept");
            assert_eq!(count(path, "transitions"), 1_000, "the history is kept while events can be deleted");
        });
    }
}

#[test]
fn a_growing_database_never_exceeds_its_limit_by_much() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        store.commit(vec![limit(2 * MIB)]).await.expect("written");
        let mut largest = 0;
        for round in 0..40 {
            fill(&store, round * 256..(round + 1) * 256, 3_000).await;
            largest = largest.max(store.stats().size().used_bytes);
        }
        assert!(largest < 5 * MIB, "{largest} bytes");
        wait_until("the file to shrink", SHRINK_TIME, || file_bytes(path) <= 2 * MIB);
        assert!(count(path, "events") < 40 * 256, "the oldest events are deleted");
        assert_eq!(count(path, &format!("events WHERE ingested_at = {}", 10_239_000_000_i64)), 1);
    });
}

/// Adds transitions of one agent on this host and one on another host, as a daemon stored them.
fn add_transitions(path: &Path, local: u32, remote: u32) {
    let mut connection = Connection::open(path).expect("opened");
    let tx = connection.transaction().expect("a transaction");
    for (target, count) in [("host", local), ("vm1", remote)] {
        let sql = "INSERT INTO runtimes (runtime_id, target_id, server, server_pid, server_start, pane_id, pane_epoch,
                                         agent_type, started_at) VALUES (?1, ?1, 'default', 1, 1, '%0', 1, 'claude', 1)";
        tx.execute(sql, [target]).expect("written");
        for n in 0..count {
            let sql = "INSERT INTO transitions (input_seq, at, runtime_id, state, confidence, state_version)
                       VALUES (1, ?1, ?2, 'running', 'high', ?1)";
            tx.execute(sql, rusqlite::params![n, target]).expect("written");
        }
    }
    tx.execute("INSERT INTO checkpoints VALUES (1, 1, '{}')", []).expect("written");
    tx.commit().expect("committed");
}

#[test]
fn the_history_of_other_hosts_is_deleted_before_that_of_this_host() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        add_transitions(path, 5_000, 60_000);
        store.commit(vec![limit(MIB)]).await.expect("written");
        let of = |target: &str| count(path, &format!("transitions WHERE runtime_id = '{target}'"));
        wait_until("the history of the other host to shrink", SHRINK_TIME, || of("vm1") < 60_000);
        wait_until("the file to shrink", SHRINK_TIME, || {
            store.stats().size().used_bytes <= MIB && file_bytes(path) <= MIB
        });
        assert_eq!(of("host"), 5_000, "the history of this host is kept");
    });
}

#[test]
fn inputs_before_the_oldest_checkpoint_are_deleted() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        let connection = Connection::open(path).expect("opened");
        for n in 1..=300 {
            connection.execute("INSERT INTO engine_inputs VALUES (?1, ?1, NULL, '{}')", [n]).expect("written");
        }
        for input_seq in [100, 200] {
            let resolver = Box::new(StateResolver::new(jiff::SignedDuration::ZERO));
            let at = Timestamp::UNIX_EPOCH;
            let checkpoint = StoreChange::Checkpoint { input_seq, at, resolver, after_loss: false };
            store.commit(vec![checkpoint]).await.expect("written");
        }
        wait_until("the covered inputs to be gone", SHRINK_TIME, || {
            count(path, "engine_inputs WHERE input_seq <= 100") == 0
        });
        assert_eq!(count(path, "engine_inputs"), 200, "a replay from the oldest checkpoint reads the others");
    });
}

/// A database as older versions created it, with this many bytes of payload text.
fn old_database(path: &Path, bytes: usize) {
    let mut connection = Connection::open(path).expect("a new database");
    connection.pragma_update(None, "journal_mode", "WAL").expect("set");
    schema::MIGRATIONS.to_version(&mut connection, schema::VERSION as usize - 1).expect("migrated");
    let tx = connection.transaction().expect("a transaction");
    for n in 0..i64::try_from(bytes / 10_000).expect("small") {
        let sql = "INSERT INTO events (event_id, status, event_type, source, event_time, ingested_at, dedupe_key,
                                       content_hash, raw_payload) VALUES (?1, 'bound', 't', 'hook', ?2, ?2, ?1, '', ?3)";
        tx.execute(sql, rusqlite::params![n.to_string(), n, random_text(10_000)]).expect("written");
    }
    tx.commit().expect("committed");
}

#[test]
fn a_database_of_an_older_version_is_readable_and_shrinks() {
    in_temp(async |path| {
        old_database(path, 12 << 20);
        let (store, _) = Store::open(path).expect("opened");
        let reader = open_reader(path).expect("opened");
        assert!(
            !maintenance::returns_free_pages(&reader).expect("readable"),
            "a large file is not rebuilt at the start"
        );
        assert!(events::body_of(&reader, "1000").expect("readable").is_some_and(|body| body.len() >= 10_000));
        store.commit(vec![limit(4 * MIB)]).await.expect("written");
        wait_until("the file to shrink", SHRINK_TIME, || file_bytes(path) <= 4 * MIB);
        assert!(maintenance::returns_free_pages(&open_reader(path).expect("opened")).expect("readable"));
        assert_eq!(events::body_of(&reader, "0").expect("readable"), None);
    });
}

#[test]
fn a_small_database_of_an_older_version_is_rebuilt_at_the_start() {
    in_temp(async |path| {
        old_database(path, 100_000);
        let (_store, _) = Store::open(path).expect("opened");
        let reader = open_reader(path).expect("opened");
        assert!(maintenance::returns_free_pages(&reader).expect("readable"));
        assert!(events::body_of(&reader, "0").expect("readable").is_some());
    });
}

/// How many bytes this thread has read from files.
fn bytes_read() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

#[test]
fn a_start_does_not_read_the_history() {
    if bytes_read().is_none() {
        return agtmux_testkit::skip("the kernel does not count what a thread reads");
    }
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        fill(&store, 0..5_000, 8_000).await;
        drop(store);
        assert!(file_bytes(path) > 16 * MIB);
        let before = bytes_read().expect("counted");
        let (_store, _) = Store::open(path).expect("opened again");
        let read = bytes_read().expect("counted") - before;
        assert!(read < MIB, "{read} bytes of {}", file_bytes(path));
    });
}

#[test]
fn damage_in_the_history_is_found_while_the_daemon_runs_and_moved_aside_later() {
    in_temp(async |path| {
        let (store, _) = Store::open(path).expect("opened");
        fill(&store, 0..2_000, 12_000).await;
        store.check_large_tables().await;
        assert_eq!(store.damage(), None);
        drop(store);
        let mut bytes = std::fs::read(path).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle..middle + (64 << 10)].fill(0xA5);
        std::fs::write(path, &bytes).expect("written");
        let (store, _) = Store::open(path).expect("the start does not read the damaged part");
        assert_eq!(store.quarantined(), None);
        store.check_large_tables().await;
        assert!(store.damage().is_some_and(|damage| damage.contains("agtmux daemon restart")), "{:?}", store.damage());
        drop(store);
        let (store, _) = Store::open(path).expect("a new database");
        assert!(store.quarantined().is_some(), "the damaged file is kept elsewhere");
        drop(store);
        let (store, _) = Store::open(path).expect("opened");
        assert_eq!(store.quarantined(), None);
    });
}
