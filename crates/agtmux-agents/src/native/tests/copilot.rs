//! Copilot CLI. Its payloads do not name their event, and a sub-agent has a session of its own.

use agtmux_core::evidence::{Assertion, Source};
use serde_json::{Value, json};

use super::{ASKS, NOTHING, QUESTION, Story};
use crate::AgentRegistry;

/// The session that they are about; sub-agents keep theirs.
const SESSION: &str = "505c68e0-81e8-45bd-bc80-a4bf153ca65c";

impl Story {
    /// What a recorded payload says; the name of its file begins with that of its event.
    fn copilot(&mut self, name: &str) -> Vec<Assertion> {
        let mut payload = self.recorded(name);
        if payload.get("parentAgentId").is_none() {
            payload["sessionId"] = json!(SESSION);
        }
        let event_type = name.split('.').next().unwrap_or(name).to_owned();
        self.event(Source::Hook, &event_type, &payload)
    }
}

#[test]
fn a_turn_of_copilot() {
    let mut copilot = Story::of("copilot");
    assert_eq!(copilot.copilot("sessionStart"), [NOTHING], "it comes with the first prompt");
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NOTHING]);
    assert_eq!(copilot.copilot("notification.permission_prompt"), [ASKS]);
    assert_eq!(copilot.copilot("postToolUse"), [Assertion::Running, NOTHING]);
    assert_eq!(copilot.copilot("notification.elicitation_dialog"), [QUESTION]);
    assert_eq!(copilot.copilot("postToolUse.ask_user"), [Assertion::Running, NOTHING]);
    assert_eq!(copilot.copilot("agentStop"), [NOTHING], "a queued prompt may follow");
    assert_eq!(copilot.later(600), Some(Assertion::Completed));
    assert_eq!(copilot.copilot("sessionEnd"), [Assertion::Idle, NOTHING]);
}

#[test]
fn another_copilot_below_it_does_not_speak_for_it_but_its_next_session_does() {
    let mut copilot = Story::of("copilot");
    copilot.copilot("userPromptSubmitted");
    let tell = |copilot: &mut Story, name: &str, session: &str| {
        let mut payload = copilot.recorded(name);
        payload["sessionId"] = json!(session);
        copilot.event(Source::Hook, name, &payload)
    };
    for name in ["sessionStart", "userPromptSubmitted", "agentStop", "sessionEnd"] {
        assert_eq!(tell(&mut copilot, name, "another"), [], "{name}");
    }
    assert_eq!(copilot.copilot("sessionEnd"), [Assertion::Idle, NOTHING]);
    assert_eq!(tell(&mut copilot, "sessionStart", "the next"), [NOTHING]);
    assert_eq!(tell(&mut copilot, "userPromptSubmitted", "the next"), [Assertion::Running, NOTHING]);
    assert_eq!(copilot.memory.session.as_deref(), Some("the next"));
}

#[test]
fn a_tool_that_is_allowed_anyway_asks_nobody() {
    let mut copilot = Story::of("copilot");
    copilot.copilot("userPromptSubmitted");
    assert_eq!(copilot.copilot("permissionRequest.allowed"), []);
    assert_eq!(copilot.copilot("permissionRequest"), [], "the notification comes at once if the user is asked");
    assert_eq!(copilot.copilot("notification.permission_prompt"), [ASKS]);
}

#[test]
fn a_subagent_of_copilot_begins_and_ends_no_turn() {
    let mut copilot = Story::of("copilot");
    copilot.copilot("userPromptSubmitted");
    assert_eq!(copilot.copilot("subagentStart"), []);
    assert_eq!(copilot.copilot("userPromptSubmitted.subagent"), [Assertion::Running]);
    assert_eq!(copilot.copilot("agentStop.subagent"), []);
    assert_eq!(copilot.copilot("subagentStop"), []);
    assert_eq!(copilot.later(1_000), None, "the agent itself goes on");
    assert_eq!(copilot.memory.session.as_deref(), Some(SESSION));
    copilot.copilot("agentStop");
    assert_eq!(copilot.later(1_000), Some(Assertion::Completed));
}

#[test]
fn a_subagent_that_is_heard_first_is_not_taken_for_the_agent() {
    let mut copilot = Story::of("copilot");
    assert_eq!(copilot.copilot("agentStop.subagent"), []);
    assert_eq!(copilot.memory.session.as_deref(), Some(SESSION));
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NOTHING]);
}

#[test]
fn an_error_of_copilot_from_which_it_may_recover_is_none() {
    let mut copilot = Story::of("copilot");
    copilot.copilot("userPromptSubmitted");
    for name in ["errorOccurred", "errorOccurred.retry"] {
        assert_eq!(copilot.copilot(name), [], "{name}");
    }
    let mut fatal = copilot.recorded("errorOccurred");
    fatal["sessionId"] = json!(SESSION);
    fatal["recoverable"] = json!(false);
    assert_eq!(copilot.event(Source::Hook, "errorOccurred", &fatal), [Assertion::Failed, NOTHING]);
}

#[test]
fn a_prompt_that_copilot_had_queued_goes_on_running() {
    let mut copilot = Story::of("copilot");
    copilot.copilot("userPromptSubmitted");
    copilot.copilot("agentStop");
    assert_eq!(copilot.later(350), None);
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NOTHING]);
    assert_eq!(copilot.later(1_000), None, "the first turn's end is not told any more");
}

#[test]
fn the_log_of_copilot() {
    let mut copilot = Story::of("copilot");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/evidence/logs/copilot.jsonl");
    let log = AgentRegistry::builtin().log_file("copilot").expect("it keeps one");
    let (mut prompts, mut ends) = (0, Vec::new());
    for line in std::fs::read_to_string(path).expect("recorded").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert!(log.time(&record).is_some(), "{line}");
        let event_type = log.event_type(&record).expect("a kind");
        // The next prompt comes a while after the end of the turn before it.
        if event_type == "user.message" && record.get("agentId").is_none() {
            ends.extend(copilot.later(1_000));
            assert_eq!(ends.len(), prompts, "{line}");
            prompts += 1;
        }
        if AgentRegistry::builtin().reads_file_event("copilot", event_type) {
            let told = copilot.event(Source::File, event_type, &record);
            ends.extend(told.iter().copied().find(|stand| matches!(stand, Assertion::Failed | Assertion::Idle)));
            assert!(!told.contains(&Assertion::Completed), "it may go on at once");
        }
    }
    ends.extend(copilot.later(1_000));
    let count = |end| ends.iter().filter(|stand| **stand == end).count();
    assert_eq!([Assertion::Completed, Assertion::Failed, Assertion::Idle].map(count), [9, 3, 4], "{ends:?}");
    assert_eq!(copilot.memory.session.as_deref(), Some("343116eb-143a-412e-b8e9-8c52c205f34f"));
}

#[test]
fn what_copilot_asks_is_in_its_log() {
    let mut copilot = Story::of("copilot");
    let mut logged = |kind: &str, data: Value| copilot.event(Source::File, kind, &json!({"type": kind, "data": data}));
    assert_eq!(logged("permission.requested", json!({"requestId": "a"})), [ASKS]);
    let completed = json!({"requestId": "a", "result": {"kind": "approved"}});
    assert_eq!(logged("permission.completed", completed), [Assertion::Running, NOTHING]);
    assert_eq!(logged("permission.requested", json!({"requestId": "b", "resolvedByHook": true})), []);
    assert_eq!(logged("tool.execution_start", json!({"toolCallId": "c", "toolName": "bash"})), []);
    assert_eq!(logged("tool.execution_start", json!({"toolCallId": "d", "toolName": "ask_user"})), [QUESTION]);
    assert_eq!(logged("human_response.recorded", json!({"toolCallId": "d"})), [Assertion::Running, NOTHING]);
    assert_eq!(logged("permission.requested", json!({"requestId": "e"})), [ASKS]);
    assert_eq!(logged("abort", json!({"reason": "user_initiated"})), [Assertion::Idle, NOTHING]);
    assert_eq!(logged("permission.completed", json!({"result": {"kind": "cancelled"}})), [NOTHING]);
}
