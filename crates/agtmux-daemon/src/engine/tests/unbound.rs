//! Events that wait for their runtime, and what becomes of them.

use super::*;

fn short_wait() -> config::StateConfig {
    let mut settings = Config::default().state;
    settings.bind_ttl = config::ConfigDuration(Duration::from_millis(100));
    settings
}

fn impatient() -> TestEngine {
    TestEngine::start_with(tempfile::tempdir().expect("a directory"), short_wait())
}

fn exact() -> EventOrigin {
    EventOrigin { pids: vec![50], start: Some(7), ..whereabouts() }
}

async fn dropped(world: &TestEngine, key: &str) -> String {
    until("the event to be dropped", || world.fate(key).0 == "dropped_unbound").await;
    world.fate(key).1.expect("a reason")
}

#[test]
fn bind_ttl_expired_when_nobody_came() {
    run(async || {
        let world = impatient();
        let receipt = world.send(event("running", "k")).await.expect("taken");
        assert_eq!(receipt.status, EventReceiptStatus::PendingBind);
        assert_eq!(dropped(&world, "k").await, "bind_ttl_expired");
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Unknown, "it came too late");
    });
}

#[test]
fn bind_no_candidate_when_only_others_live_there() {
    run(async || {
        let world = impatient();
        world.pane("default", 10, Some(51)).await;
        world
            .send(IncomingEvent { address: EventAddress::Origin(exact()), ..event("running", "k") })
            .await
            .expect("taken");
        assert_eq!(dropped(&world, "k").await, "bind_no_candidate");
        assert_eq!(world.only().1, State::Unknown);
    });
}

#[test]
fn bind_ambiguous_also_when_only_one_of_them_is_left() {
    run(async || {
        let world = impatient();
        world.pane("a", 10, Some(50)).await;
        world.pane("b", 20, Some(60)).await;
        world.send(event("running", "k")).await.expect("taken");
        world.pane("a", 10, None).await;
        world.pane("c", 30, None).await;
        assert_eq!(world.only().1, State::Unknown, "it may have been about the one that ended");
        assert_eq!(dropped(&world, "k").await, "bind_ambiguous");
    });
}

/// Makes the waiting events of a stopped engine older.
fn age(dir: &TempDir, seconds: i64) {
    let connection = rusqlite::Connection::open(dir.path().join("state.db")).expect("opened");
    let sql = "UPDATE events SET ingested_at = ingested_at - ?1, event_time = event_time - ?1";
    connection.execute(sql, [seconds * 1_000_000]).expect("written");
}

#[test]
fn an_event_is_bound_when_its_pane_appears_within_30_seconds() {
    run(async || {
        let world = TestEngine::new();
        world
            .send(IncomingEvent { address: EventAddress::Origin(exact()), ..event("running", "k") })
            .await
            .expect("taken");
        let dir = world.stop().await;
        age(&dir, 25);
        let world = TestEngine::start(dir);
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Running);
        assert_eq!(world.fate("k"), ("bound".into(), None));
        assert_replays(&world.database());
    });
}

#[test]
fn an_event_is_not_bound_when_its_pane_appears_after_30_seconds() {
    run(async || {
        let world = TestEngine::new();
        world
            .send(IncomingEvent { address: EventAddress::Origin(exact()), ..event("running", "k") })
            .await
            .expect("taken");
        let dir = world.stop().await;
        age(&dir, 31);
        let world = TestEngine::start(dir);
        assert_eq!(dropped(&world, "k").await, "bind_ttl_expired");
        world.pane("default", 10, Some(50)).await;
        assert_eq!(world.only().1, State::Unknown);
    });
}

#[test]
fn a_waiting_event_is_taken_once() {
    run(async || {
        let world = TestEngine::new();
        let first = world.send(event("running", "k")).await.expect("taken");
        let again = world.send(event("running", "k")).await.expect("known");
        assert_eq!((again.status, again.event_id), (EventReceiptStatus::Duplicate, first.event_id));
        let other = world.send(event("idle", "k")).await.expect_err("other content");
        assert_eq!(other.code, agtmux_api::error::ErrorCode::IdempotencyConflict);
    });
}
