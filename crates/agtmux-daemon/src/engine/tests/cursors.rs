//! Tests of events that carry a sequence number from their source.

use super::*;

fn numbered(state: &str, key: &str, seq: u64) -> IncomingEvent {
    IncomingEvent { source_seq: Some(seq), ..event(state, key) }
}

#[test]
fn an_event_with_a_lower_number_is_stored_but_not_applied_also_after_a_restart() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(numbered("running", "a", 7)).await.expect("accepted");
        engine.send(numbered("waiting_approval", "b", 5)).await.expect("accepted");
        assert_eq!(engine.only_agent().1, State::Running);
        let engine = engine.restart().await;
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(numbered("waiting_approval", "c", 6)).await.expect("accepted");
        assert_eq!(engine.only_agent().1, State::Running, "the newest number survives a restart");
        assert_eq!(engine.event_status("c").0, "bound");
        engine.send(numbered("waiting_approval", "d", 8)).await.expect("accepted");
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
    });
}

#[test]
fn an_event_without_a_number_does_not_reset_the_numbers_of_its_source() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(numbered("idle", "a", 7)).await.expect("accepted");
        engine.send(event("running", "b")).await.expect("accepted");
        for _ in 0..2 {
            engine.send(numbered("waiting_approval", "c", 5)).await.expect("accepted");
            assert_eq!(engine.only_agent().1, State::Running);
        }
    });
}

#[test]
fn each_source_has_numbers_of_its_own() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("default", 10, Some(50)).await;
        engine.send(numbered("running", "a", 7)).await.expect("accepted");
        let other = IncomingEvent { source: Source::Wrapper, ..numbered("waiting_approval", "b", 1) };
        engine.send(other).await.expect("accepted");
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
    });
}
