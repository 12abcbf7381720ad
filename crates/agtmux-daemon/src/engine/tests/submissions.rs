//! Tests that clients see whether the turn of a submitted text is pending, and that a pending turn changes no state.

use agtmux_core::evidence::{Assertion, Observation, RuleRef};

use super::*;
use crate::observe::ScreenEvidence;

const PROCESS: ProcessRef = ProcessRef { pid: 50, start: 7 };
const BEGINS: SubmissionProgress = SubmissionProgress::Begins { relayed: false };

/// An engine with an agent that has completed a turn.
async fn completed_agent() -> (TestEngine, RuntimeId) {
    let engine = TestEngine::new();
    engine.set_pane("a", 10, Some(PROCESS.pid)).await;
    engine.send(event("completed", "before")).await.expect("accepted");
    let runtime = RuntimeId::from_stored(engine.only_agent().0);
    (engine, runtime)
}

fn pending(engine: &TestEngine) -> bool {
    let log = engine.event_log.read();
    let is_pending = |item: WatchItem| matches!(item, WatchItem::Pane(pane) if pane.turn_pending);
    log.view.items(ListScope::Panes).any(is_pending)
}

/// Sends a capture of a settled screen that shows the agent at rest. The time of the capture is `after` from now.
async fn show_rest(engine: &TestEngine, after: SignedDuration) {
    let captured_at = engine.clock.now().checked_add(after).expect("in range");
    let rests = Observation::new(Source::Screen, Assertion::Idle, captured_at, RuleRef::new("test", 1));
    let evidence = ScreenEvidence {
        server: server("a"),
        generation: GENERATION,
        pane: PaneId(0),
        process: PROCESS,
        captured_at,
        observations: vec![rests],
        silent_sources: Vec::new(),
    };
    engine.handle().apply_screen(evidence).await;
    engine.handle().flush().await;
}

#[test]
fn a_turn_is_pending_until_the_agent_runs() {
    run(async || {
        let (engine, runtime) = completed_agent().await;
        engine.handle().note_submission(runtime, BEGINS).await;
        assert!(pending(&engine));
        assert_eq!(engine.only_agent().1, State::Completed, "the state does not change");
        engine.send(event("completed", "late report of the turn before")).await.expect("accepted");
        assert!(pending(&engine));
        engine.send(event("running", "next")).await.expect("accepted");
        assert!(!pending(&engine));
        let dir = engine.stop().await;
        assert_replays(&dir.path().join("state.db"));
    });
}

#[test]
fn a_turn_that_was_not_seen_is_pending_until_a_late_screen_at_rest() {
    run(async || {
        let (engine, runtime) = completed_agent().await;
        engine.handle().note_submission(runtime.clone(), BEGINS).await;
        show_rest(&engine, SignedDuration::from_secs(4)).await;
        assert!(pending(&engine));
        show_rest(&engine, SignedDuration::from_secs(6)).await;
        assert_eq!((pending(&engine), engine.only_agent().1), (false, State::Completed));

        engine.handle().note_submission(runtime.clone(), BEGINS).await;
        engine.handle().note_submission(runtime, SubmissionProgress::Failed).await;
        assert!(!pending(&engine), "the text was not submitted");
    });
}

#[test]
fn a_submission_ends_with_its_agent() {
    run(async || {
        let (engine, runtime) = completed_agent().await;
        engine.handle().note_submission(runtime.clone(), BEGINS).await;
        engine.set_pane("a", 10, Some(51)).await;
        assert!(!pending(&engine), "another agent");
        engine.handle().note_submission(runtime, BEGINS).await;
        assert!(!pending(&engine), "the agent is gone");
    });
}
