//! Tests that a reported dialog is published together with its content.

use std::time::Duration;

use agtmux_api::config::ConfigDuration;
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef};
use serde_json::json;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

/// An engine with a running agent, and the hints that the engine sends to the observer of the agent's server.
pub(super) async fn observed_engine(
    dialog_hold: Duration,
) -> (TestEngine, tokio::sync::mpsc::UnboundedReceiver<crate::observe::ObserverHint>) {
    let (hints, received) = RecheckHints::with_observer(server("a"));
    let settings = config::StateConfig { dialog_hold: ConfigDuration(dialog_hold), ..Config::default().state };
    let engine = TestEngine::start_observed(tempfile::tempdir().expect("a directory"), settings, Arc::new(hints));
    engine.set_pane("a", 10, Some(50)).await;
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"});
    assert_eq!(engine.post_hook("prompt", prompt).await, State::Running);
    (engine, received)
}

fn request(name: &str) -> Value {
    json!({"hook_event_name": name, "tool_name": "Bash", "tool_input": {"command": "x"}})
}

fn approval(dialog: &Dialog) -> Observation {
    let asks = Assertion::DialogOpen(DialogKind::Approval);
    let seen = Observation::new(Source::Screen, asks, Timestamp::now(), RuleRef::new("test", 1));
    Observation { dialog: Some(Box::new(dialog.clone())), ..seen }
}

pub(super) fn transitions(engine: &TestEngine) -> Vec<String> {
    let connection = rusqlite::Connection::open(engine.database()).expect("opened");
    let mut rows = connection.prepare("SELECT state FROM transitions ORDER BY seq").expect("valid SQL");
    let states = rows.query_map([], |row| row.get(0)).expect("rows");
    states.collect::<Result<_, _>>().expect("read")
}

#[tokio::test]
async fn a_reported_dialog_is_published_with_its_content() {
    let (engine, mut hints) = observed_engine(LONG).await;
    assert_eq!(engine.post_hook("ask", request("PermissionRequest")).await, State::Running, "not yet");
    let asked = std::iter::from_fn(|| hints.try_recv().ok());
    assert_eq!(asked.filter(|hint| *hint == crate::observe::ObserverHint::AgentAsked(0)).count(), 1);
    let dialog = Dialog::new(DialogKind::Approval, "Run it?".into(), None, Vec::new());
    engine.show_screen(ProcessRef { pid: 50, start: 7 }, vec![approval(&dialog)], vec![]).await;
    assert_eq!((engine.only_agent().1, engine.dialog()), (State::WaitingApproval, Some(dialog)));
    assert_eq!(transitions(&engine), ["unknown", "running", "waiting_approval"]);
    // A second question while the first one is open changes nothing.
    let mut second = request("PermissionRequest");
    second["tool_input"]["command"] = json!("y");
    assert_eq!(engine.post_hook("again", second).await, State::WaitingApproval);
}

async fn wait_for_approval(engine: &TestEngine) {
    wait_until("the approval to be published", || engine.only_agent().1 == State::WaitingApproval).await;
}

#[tokio::test]
async fn a_dialog_that_the_screen_does_not_show_is_published_after_the_hold() {
    let (engine, _hints) = observed_engine(Duration::from_millis(1)).await;
    engine.post_hook("ask", request("PermissionRequest")).await;
    wait_for_approval(&engine).await;
    assert_eq!(engine.dialog(), None);
}

#[tokio::test]
async fn a_dialog_that_closes_during_the_hold_is_in_the_history() {
    let (engine, _hints) = observed_engine(LONG).await;
    engine.post_hook("ask", request("PermissionRequest")).await;
    assert_eq!(engine.post_hook("done", request("PostToolUse")).await, State::Running);
    assert_eq!(transitions(&engine), ["unknown", "running", "waiting_approval", "running"]);
}

#[tokio::test]
async fn a_held_dialog_survives_a_restart() {
    let (engine, _hints) = observed_engine(Duration::from_millis(1)).await;
    engine.post_hook("ask", request("PermissionRequest")).await;
    let engine = engine.restart().await;
    engine.set_pane("a", 10, Some(50)).await;
    wait_for_approval(&engine).await;
}

#[tokio::test]
async fn a_failed_turn_is_not_followed_by_an_unknown_state() {
    let (engine, _hints) = observed_engine(LONG).await;
    engine.post_hook("failed", json!({"hook_event_name": "StopFailure", "session_id": "s"})).await;
    assert_eq!(engine.post_hook("ask", request("PermissionRequest")).await, State::WaitingApproval);
}
