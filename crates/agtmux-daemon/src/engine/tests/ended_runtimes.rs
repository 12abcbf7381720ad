//! Tests that events of an ended runtime never affect the new runtime in the same pane.

use super::*;

const OLD: ProcessRef = ProcessRef { pid: 50, start: 7 };

/// Checks that events about the old runtime change nothing, and that events about the new runtime are still applied.
async fn assert_independent(engine: &TestEngine, old: &str, new: &str) {
    assert_ne!(old, new);
    let state = || engine.agents().into_iter().find(|(id, _)| id == new).map(|(_, state)| state);
    let by_id = IncomingEvent {
        address: EventAddress::Runtime(RuntimeId::from_stored(old.to_owned())),
        ..event("running", "by-id")
    };
    let error = engine.send(by_id).await.expect_err("the runtime has ended");
    assert_eq!(error.code, agtmux_api::error::ErrorCode::RuntimeNotFound);
    let by_process = EventOrigin { pids: vec![OLD.pid], start: Some(OLD.start), ..origin() };
    let by_process = IncomingEvent { address: EventAddress::Origin(by_process), ..event("running", "by-process") };
    assert_eq!(engine.send(by_process).await.expect("accepted").status, EventReceiptStatus::PendingBind);
    let before_it_began = Timestamp::now().checked_sub(Duration::from_secs(4)).expect("in range");
    let late = IncomingEvent { event_time: Some(before_it_began), ..event("running", "late") };
    assert_eq!(engine.send(late).await.expect("accepted").status, EventReceiptStatus::PendingBind);
    assert_eq!(state(), Some(State::Unknown));

    let by_id = IncomingEvent {
        address: EventAddress::Runtime(RuntimeId::from_stored(new.to_owned())),
        ..event("idle", "new")
    };
    assert_eq!(engine.send(by_id).await.expect("accepted").status, EventReceiptStatus::Bound);
    assert_eq!(state(), Some(State::Idle));
}

#[test]
fn events_of_an_ended_runtime_never_affect_the_new_one_after_pane_respawn() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane_with("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = engine.only_agent();
        engine.set_pane_with("default", GENERATION, 11, Some(ProcessRef { pid: 60, start: 9 })).await;
        assert_independent(&engine, &old, &engine.only_agent().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_affect_the_new_one_after_server_restart_same_pane_id() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane_with("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = engine.only_agent();
        let next = Generation { pid: 2, start_time: 2 };
        engine.set_pane_with("default", next, 10, Some(ProcessRef { pid: 60, start: 9 })).await;
        assert_independent(&engine, &old, &engine.only_agent().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_affect_the_new_one_after_pid_reuse() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane_with("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = engine.only_agent();
        engine.set_pane_with("default", GENERATION, 10, Some(ProcessRef { start: 9, ..OLD })).await;
        assert_independent(&engine, &old, &engine.only_agent().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_affect_the_new_one_on_two_servers() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane_with("a", GENERATION, 10, Some(OLD)).await;
        engine.set_pane_with("b", GENERATION, 20, Some(ProcessRef { pid: 60, start: 9 })).await;
        let on_a = EventOrigin { server: Some(ServerName::new("a")), ..origin() };
        engine
            .send(IncomingEvent { address: EventAddress::Origin(on_a.clone()), ..event("running", "k") })
            .await
            .expect("accepted");
        engine.set_pane_with("a", GENERATION, 10, None).await;
        assert_eq!(engine.only_agent().1, State::Unknown, "an event for one server does not affect the other");
        let late = engine
            .send(IncomingEvent { address: EventAddress::Origin(on_a), ..event("completed", "k2") })
            .await
            .expect("accepted");
        assert_eq!(late.status, EventReceiptStatus::PendingBind);
        assert_eq!(engine.only_agent().1, State::Unknown);
        assert_replays(&engine.database());
    });
}
