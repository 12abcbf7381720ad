//! A disk that refuses for a while.

use super::*;

#[test]
fn what_is_acknowledged_after_a_failed_write_is_stored_and_the_log_begins_anew() {
    run(async || {
        let world = TestEngine::new();
        world.pane("default", 10, Some(50)).await;
        world.send(event("running", "before")).await.expect("taken");
        let other = rusqlite::Connection::open(world.database()).expect("opened");
        other.execute_batch("BEGIN IMMEDIATE").expect("locked");
        let refused = world.send(event("waiting_input", "during")).await.expect_err("nobody can write");
        assert_eq!(refused.code, agtmux_api::error::ErrorCode::NotStored);
        other.execute_batch("ROLLBACK").expect("unlocked");

        let after = world.send(event("completed", "after")).await.expect("taken");
        assert_eq!(after.status, EventReceiptStatus::Bound);
        assert_eq!(world.fate("after").0, "bound");
        assert_replays(&world.database());
        let again = world.send(event("waiting_input", "during")).await.expect("it was never stored");
        assert_eq!(again.status, EventReceiptStatus::Bound);
        let world = world.restart().await;
        assert_eq!(world.only().1, State::WaitingInput);
        assert_replays(&world.database());
    });
}
