//! Tests with a store that refuses writes for a while.

use super::*;

#[test]
fn after_a_failed_write_acknowledged_events_are_stored_and_a_new_log_begins() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(event("running", "before")).await.expect("accepted");
        let other = rusqlite::Connection::open(engine.database()).expect("opened");
        other.execute_batch("BEGIN IMMEDIATE").expect("locked");
        let error = engine.send(event("waiting_input", "during")).await.expect_err("the database is locked");
        assert_eq!(error.code, agtmux_api::error::ErrorCode::NotStored);
        other.execute_batch("ROLLBACK").expect("unlocked");

        let after = engine.send(event("completed", "after")).await.expect("accepted");
        assert_eq!(after.status, EventReceiptStatus::Bound);
        assert_eq!(engine.event_status("after").0, "bound");
        assert_replays(&engine.database());
        let again = engine.send(event("waiting_input", "during")).await.expect("accepted: it was not stored before");
        assert_eq!(again.status, EventReceiptStatus::Bound);
        let engine = engine.restart().await;
        assert_eq!(engine.only_agent().1, State::WaitingInput);
        assert_replays(&engine.database());
    });
}

#[test]
fn a_step_of_the_clock_is_stored_after_a_failed_write() {
    run(async || {
        for by in [SignedDuration::from_hours(-24), SignedDuration::from_hours(24)] {
            let engine = TestEngine::new();
            let receipt = engine.send(event("running", "before")).await.expect("accepted");
            assert_eq!(receipt.status, EventReceiptStatus::PendingBind);
            let stored = engine.event_time("before");
            let other = rusqlite::Connection::open(engine.database()).expect("opened");
            other.execute_batch("BEGIN IMMEDIATE").expect("locked");
            engine.time.set_wall_clock(by);
            engine.send(event("waiting_input", "during")).await.expect_err("the database is locked");
            other.execute_batch("ROLLBACK").expect("unlocked");
            engine.send(event("completed", "after")).await.expect("accepted");
            let moved = engine.event_time("before").duration_since(stored);
            assert!((moved - by).abs() < SignedDuration::from_mins(1), "moved by {moved:?} instead of {by:?}");
        }
    });
}

impl TestEngine {
    fn event_time(&self, key: &str) -> Timestamp {
        let connection = rusqlite::Connection::open(self.database()).expect("opened");
        let sql = "SELECT ingested_at FROM events WHERE dedupe_key = ?1";
        let micros = connection.query_row(sql, [key], |row| row.get(0)).expect("the event is stored");
        Timestamp::from_microsecond(micros).expect("a time")
    }
}
