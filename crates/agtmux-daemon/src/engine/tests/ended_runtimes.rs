//! Events of an ended runtime never touch the new one in its pane.

use super::*;

const OLD: ProcessRef = ProcessRef { pid: 50, start: 7 };

/// Whatever says that it is about the old one changes nothing, and the new one can still be spoken of.
async fn assert_apart(world: &TestEngine, old: &str, new: &str) {
    assert_ne!(old, new);
    let state = || world.agents().into_iter().find(|(id, _)| id == new).map(|(_, state)| state);
    let by_id = IncomingEvent {
        address: EventAddress::Runtime(RuntimeId::from_stored(old.to_owned())),
        ..event("running", "by-id")
    };
    let refused = world.send(by_id).await.expect_err("it has ended");
    assert_eq!(refused.code, agtmux_api::error::ErrorCode::RuntimeNotFound);
    let by_process = EventOrigin { pids: vec![OLD.pid], start: Some(OLD.start), ..whereabouts() };
    let by_process = IncomingEvent { address: EventAddress::Origin(by_process), ..event("running", "by-process") };
    assert_eq!(world.send(by_process).await.expect("taken").status, EventReceiptStatus::PendingBind);
    let before_it_began = Timestamp::now().checked_sub(Duration::from_secs(4)).expect("in range");
    let late = IncomingEvent { event_time: Some(before_it_began), ..event("running", "late") };
    assert_eq!(world.send(late).await.expect("taken").status, EventReceiptStatus::PendingBind);
    assert_eq!(state(), Some(State::Unknown));

    let by_id = IncomingEvent {
        address: EventAddress::Runtime(RuntimeId::from_stored(new.to_owned())),
        ..event("idle", "new")
    };
    assert_eq!(world.send(by_id).await.expect("taken").status, EventReceiptStatus::Bound);
    assert_eq!(state(), Some(State::Idle));
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_pane_respawn() {
    run(async || {
        let world = TestEngine::new();
        world.pane_of("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = world.only();
        world.pane_of("default", GENERATION, 11, Some(ProcessRef { pid: 60, start: 9 })).await;
        assert_apart(&world, &old, &world.only().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_server_restart_same_pane_id() {
    run(async || {
        let world = TestEngine::new();
        world.pane_of("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = world.only();
        let next = Generation { pid: 2, start_time: 2 };
        world.pane_of("default", next, 10, Some(ProcessRef { pid: 60, start: 9 })).await;
        assert_apart(&world, &old, &world.only().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_pid_reuse() {
    run(async || {
        let world = TestEngine::new();
        world.pane_of("default", GENERATION, 10, Some(OLD)).await;
        let (old, _) = world.only();
        world.pane_of("default", GENERATION, 10, Some(ProcessRef { start: 9, ..OLD })).await;
        assert_apart(&world, &old, &world.only().0).await;
    });
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_two_servers() {
    run(async || {
        let world = TestEngine::new();
        world.pane_of("a", GENERATION, 10, Some(OLD)).await;
        world.pane_of("b", GENERATION, 20, Some(ProcessRef { pid: 60, start: 9 })).await;
        let on_a = EventOrigin { server: Some(ServerName::new("a")), ..whereabouts() };
        world
            .send(IncomingEvent { address: EventAddress::Origin(on_a.clone()), ..event("running", "k") })
            .await
            .expect("taken");
        world.pane_of("a", GENERATION, 10, None).await;
        assert_eq!(world.only().1, State::Unknown, "what was said on one server says nothing on the other");
        let late = world
            .send(IncomingEvent { address: EventAddress::Origin(on_a), ..event("completed", "k2") })
            .await
            .expect("taken");
        assert_eq!(late.status, EventReceiptStatus::PendingBind);
        assert_eq!(world.only().1, State::Unknown);
        assert_replays(&world.database());
    });
}
