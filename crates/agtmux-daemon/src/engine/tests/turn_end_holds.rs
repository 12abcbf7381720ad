//! Tests of screens while the end of a turn is held back.

use agtmux_core::evidence::{Assertion, Observation, RuleRef};
use serde_json::json;

use super::dialog_holds::{observed_engine, transitions};
use super::*;
use crate::observe::ObserverHint;

const AGENT: ProcessRef = ProcessRef { pid: 50, start: 7 };

fn at_rest() -> Observation {
    Observation::new(Source::Screen, Assertion::Idle, Timestamp::now(), RuleRef::new("test", 1))
}

#[tokio::test]
async fn a_screen_at_rest_is_not_idle_while_the_end_of_the_turn_is_held() {
    let (engine, mut hints) = observed_engine(std::time::Duration::ZERO).await;
    // While a second prompt is queued, the end of the first turn is held.
    let queued = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "and then"});
    engine.post_hook("queued", queued).await;
    let stop = json!({"hook_event_name": "Stop", "session_id": "s"});
    assert_eq!(engine.post_hook("stop", stop).await, State::Running, "held");
    while hints.try_recv().is_ok() {}
    engine.show_screen(AGENT, vec![at_rest()], vec![]).await;
    wait_until("the turn to be completed", || engine.only_agent().1 == State::Completed).await;
    assert_eq!(transitions(&engine), ["unknown", "running", "completed"]);
    assert_eq!(hints.recv().await, Some(ObserverHint::AgentSentEvent(0)), "the screen is read again after the hold");
}
