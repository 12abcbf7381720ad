//! A store that refuses writes for a while.

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
