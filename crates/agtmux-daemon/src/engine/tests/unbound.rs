//! Tests of events that wait for their runtime, and of the reasons why such events are dropped.

use super::*;

fn short_wait() -> config::StateConfig {
    let mut settings = Config::default().state;
    settings.bind_ttl = config::ConfigDuration(Duration::from_millis(100));
    settings
}

fn engine_with_short_bind_ttl() -> TestEngine {
    TestEngine::start_with(tempfile::tempdir().expect("a directory"), short_wait())
}

fn exact_origin() -> EventOrigin {
    EventOrigin { pids: vec![50], start: Some(7), ..origin() }
}

async fn drop_reason(engine: &TestEngine, key: &str) -> String {
    wait_until("the event to be dropped", || engine.event_status(key).0 == "dropped_unbound").await;
    engine.event_status(key).1.expect("a reason")
}

#[test]
fn bind_ttl_expired_when_no_runtime_appears() {
    run(async || {
        let engine = engine_with_short_bind_ttl();
        let receipt = engine.send(event("running", "k")).await.expect("accepted");
        assert_eq!(receipt.status, EventReceiptStatus::PendingBind);
        assert_eq!(drop_reason(&engine, "k").await, "bind_ttl_expired");
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Unknown, "the runtime appeared too late");
    });
}

#[test]
fn bind_no_candidate_when_another_process_is_in_the_pane() {
    run(async || {
        let engine = engine_with_short_bind_ttl();
        engine.set_pane("default", 10, Some(51)).await;
        engine
            .send(IncomingEvent { address: EventAddress::Origin(exact_origin()), ..event("running", "k") })
            .await
            .expect("accepted");
        assert_eq!(drop_reason(&engine, "k").await, "bind_no_candidate");
        assert_eq!(engine.only_agent().1, State::Unknown);
    });
}

#[test]
fn bind_ambiguous_even_if_only_one_candidate_is_left() {
    run(async || {
        let engine = engine_with_short_bind_ttl();
        engine.set_pane("a", 10, Some(50)).await;
        engine.set_pane("b", 20, Some(60)).await;
        engine.send(event("running", "k")).await.expect("accepted");
        engine.set_pane("a", 10, None).await;
        engine.set_pane("c", 30, None).await;
        assert_eq!(engine.only_agent().1, State::Unknown, "the event may be about the ended runtime");
        assert_eq!(drop_reason(&engine, "k").await, "bind_ambiguous");
    });
}

/// Makes the pending events in the database older. The engine must be stopped.
fn age(dir: &TempDir, seconds: i64) {
    let connection = rusqlite::Connection::open(dir.path().join("state.db")).expect("opened");
    let sql = "UPDATE events SET ingested_at = ingested_at - ?1, event_time = event_time - ?1";
    connection.execute(sql, [seconds * 1_000_000]).expect("written");
}

#[test]
fn an_event_is_bound_when_its_pane_appears_within_30_seconds() {
    run(async || {
        let engine = TestEngine::new();
        engine
            .send(IncomingEvent { address: EventAddress::Origin(exact_origin()), ..event("running", "k") })
            .await
            .expect("accepted");
        let dir = engine.stop().await;
        age(&dir, 25);
        let engine = TestEngine::start(dir);
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Running);
        assert_eq!(engine.event_status("k"), ("bound".into(), None));
        assert_replays(&engine.database());
    });
}

#[test]
fn an_event_is_not_bound_when_its_pane_appears_after_30_seconds() {
    run(async || {
        let engine = TestEngine::new();
        engine
            .send(IncomingEvent { address: EventAddress::Origin(exact_origin()), ..event("running", "k") })
            .await
            .expect("accepted");
        let dir = engine.stop().await;
        age(&dir, 31);
        let engine = TestEngine::start(dir);
        assert_eq!(drop_reason(&engine, "k").await, "bind_ttl_expired");
        engine.set_pane("default", 10, Some(50)).await;
        assert_eq!(engine.only_agent().1, State::Unknown);
    });
}

#[test]
fn a_pending_event_is_accepted_once() {
    run(async || {
        let engine = TestEngine::new();
        let first = engine.send(event("running", "k")).await.expect("accepted");
        let again = engine.send(event("running", "k")).await.expect("accepted");
        assert_eq!((again.status, again.event_id), (EventReceiptStatus::Duplicate, first.event_id));
        let other = engine.send(event("idle", "k")).await.expect_err("other content");
        assert_eq!(other.code, agtmux_api::error::ErrorCode::IdempotencyConflict);
    });
}
