//! Tests in which the clock is set or the machine sleeps.

use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef};

use super::*;

const AGENT: ProcessRef = ProcessRef { pid: 50, start: 7 };
const STEPS: [SignedDuration; 4] = [
    SignedDuration::from_mins(-2),
    SignedDuration::from_mins(2),
    SignedDuration::from_hours(-24),
    SignedDuration::from_hours(24),
];

impl TestEngine {
    /// Sends a screen capture with these assertions. The capture has the current time.
    async fn show(&self, assertions: &[Assertion]) {
        self.show_as_of(self.clock.now(), assertions).await;
    }

    async fn show_as_of(&self, as_of: Timestamp, assertions: &[Assertion]) {
        let observe = |assertion: &Assertion| Observation {
            excerpt: "a line".into(),
            ..Observation::new(Source::Screen, *assertion, as_of, RuleRef::new("test", 1))
        };
        let evidence = ScreenEvidence {
            server: server("a"),
            generation: GENERATION,
            pane: PaneId(0),
            process: AGENT,
            captured_at: as_of,
            observations: assertions.iter().map(observe).collect(),
            silent_sources: Vec::new(),
        };
        self.handle().apply_screen(evidence).await;
        self.handle().flush().await;
    }

    fn since(&self) -> Timestamp {
        let log = self.event_log.read();
        let pane = log.view.items(ListScope::Panes).find_map(|item| match item {
            WatchItem::Pane(pane) => pane.since,
            _ => None,
        });
        pane.expect("an agent has a state")
    }
}

const IDLE: [Assertion; 2] = [Assertion::Idle, Assertion::NoDialog];
const DIALOG: [Assertion; 1] = [Assertion::DialogOpen(DialogKind::Approval)];

#[test]
fn states_stay_right_when_the_clock_is_set() {
    run(async || {
        for (step, restarts) in STEPS.iter().flat_map(|step| [(*step, false), (*step, true)]) {
            let mut engine = TestEngine::new();
            engine.set_pane("a", 10, Some(50)).await;
            engine.show(&IDLE).await;
            assert_eq!(engine.only_agent().1, State::Idle);
            let age = engine.clock.now().duration_since(engine.since());
            engine.time.set_wall_clock(step);
            if restarts {
                engine = engine.restart().await;
            }
            engine.handle().flush().await;
            assert_eq!(engine.only_agent().1, State::Idle, "{step:?}, restart: {restarts}");
            let now = engine.clock.now().duration_since(engine.since());
            assert!((now - age).abs() < SignedDuration::from_mins(1), "the age was {age:?} and is {now:?}");
            engine.show(&DIALOG).await;
            assert_eq!(engine.only_agent().1, State::WaitingApproval, "{step:?}, restart: {restarts}");
            engine.send(event("running", "k1")).await.expect("accepted");
            engine.show(&[Assertion::Running, Assertion::NoDialog]).await;
            assert_eq!(engine.only_agent().1, State::Running, "{step:?}, restart: {restarts}");
            assert_replays(&engine.database());
        }
    });
}

#[test]
fn a_clock_that_is_right_again_hides_nothing() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("a", 10, Some(50)).await;
        engine.time.set_wall_clock(SignedDuration::from_hours(24));
        engine.show(&IDLE).await;
        let engine = engine.restart().await;
        engine.time.set_wall_clock(SignedDuration::ZERO);
        engine.show(&DIALOG).await;
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
        assert!(engine.since() <= engine.clock.now(), "no time lies in the future");
        assert_replays(&engine.database());
    });
}

#[test]
fn a_capture_from_before_a_step_back_does_not_hide_the_next_one() {
    run(async || {
        let engine = TestEngine::new();
        engine.set_pane("a", 10, Some(50)).await;
        let before = engine.clock.now();
        engine.time.set_wall_clock(SignedDuration::from_hours(-24));
        engine.show_as_of(before, &IDLE).await;
        engine.show(&DIALOG).await;
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
    });
}

#[test]
fn a_store_of_another_boot_with_future_times_hides_nothing() {
    run(async || {
        let engine = TestEngine::new();
        engine.time.set_wall_clock(SignedDuration::from_hours(24));
        engine.set_pane("a", 10, Some(50)).await;
        engine.show(&IDLE).await;
        let time = engine.time.clone();
        let dir = engine.stop().await;
        let connection = rusqlite::Connection::open(dir.path().join("state.db")).expect("opened");
        let deleted = connection.execute("DELETE FROM meta WHERE key = 'clock_anchor'", []);
        assert_eq!(deleted.expect("deleted"), 1, "an older version wrote no anchor");
        drop(connection);
        time.set_wall_clock(SignedDuration::ZERO);
        let engine = TestEngine::start_at(dir, Config::default().state, time);
        engine.handle().flush().await;
        assert!(engine.since() <= engine.clock.now());
        engine.show(&DIALOG).await;
        assert_eq!(engine.only_agent().1, State::WaitingApproval);
        assert_replays(&engine.database());
    });
}

#[test]
fn a_spooled_event_keeps_its_place_when_the_clock_was_set_meanwhile() {
    run(async || {
        for step in STEPS {
            let engine = TestEngine::new();
            engine.set_pane("default", 10, Some(50)).await;
            engine.send(event("running", "k1")).await.expect("accepted");
            let spooled =
                |at, key| IncomingEvent { event_time: Some(at), was_spooled: true, ..event("waiting_approval", key) };
            let before = spooled(engine.clock.now(), "k2");
            engine.time.set_wall_clock(step);
            let engine = engine.restart().await;
            engine.send(before).await.expect("accepted");
            assert_eq!(engine.only_agent().1, State::WaitingApproval, "spooled before a step of {step:?}");
            engine.send(event("running", "k3")).await.expect("accepted");
            engine.send(spooled(engine.clock.now(), "k4")).await.expect("accepted");
            assert_eq!(engine.only_agent().1, State::WaitingApproval, "spooled after a step of {step:?}");
        }
    });
}

#[test]
fn nothing_expires_while_the_machine_sleeps() {
    run(async || {
        let settings = config::StateConfig {
            running_ttl: "1m".parse().expect("a duration"),
            completed_to_idle: "1m".parse().expect("a duration"),
            ..Config::default().state
        };
        for (reported, state) in [("running", State::Running), ("completed", State::Completed)] {
            let dir = tempfile::tempdir().expect("a directory");
            let engine = TestEngine::start_with(dir, settings);
            engine.set_pane("default", 10, Some(50)).await;
            engine.send(event(reported, "k1")).await.expect("accepted");
            let since = engine.since();
            engine.time.sleep(SignedDuration::from_hours(8));
            engine.handle().flush().await;
            assert_eq!((engine.only_agent().1, engine.since()), (state, since));
            assert_replays(&engine.database());
        }
    });
}
