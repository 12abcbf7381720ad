//! Copilot CLI. Its payloads do not name their event, and a sub-agent has its own session.

use agtmux_core::evidence::{Assertion, Source};
use serde_json::{Value, json};

use super::{APPROVAL, AdapterTest, NO_DIALOG, QUESTION, builtin};

/// The session id that replaces the recorded one in payloads of the main agent. Payloads of sub-agents keep their own.
const SESSION: &str = "505c68e0-81e8-45bd-bc80-a4bf153ca65c";

impl AdapterTest {
    /// The assertions from a recorded payload. The name of the recording begins with the event name.
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
fn copilot_reports_a_turn() {
    let mut copilot = AdapterTest::new("copilot");
    assert_eq!(copilot.copilot("sessionStart"), [NO_DIALOG], "the event comes with the first prompt");
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(copilot.copilot("notification.permission_prompt"), [APPROVAL]);
    assert_eq!(copilot.copilot("postToolUse"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(copilot.copilot("notification.elicitation_dialog"), [QUESTION]);
    assert_eq!(copilot.copilot("postToolUse.ask_user"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(copilot.copilot("agentStop"), [NO_DIALOG], "a queued prompt may follow");
    assert_eq!(copilot.advance(600), Some(Assertion::Completed));
    assert_eq!(copilot.copilot("sessionEnd"), [Assertion::Idle, NO_DIALOG]);
}

#[test]
fn events_of_a_nested_copilot_are_ignored_but_its_next_session_counts() {
    let mut copilot = AdapterTest::new("copilot");
    copilot.copilot("userPromptSubmitted");
    let report = |copilot: &mut AdapterTest, name: &str, session: &str| {
        let mut payload = copilot.recorded(name);
        payload["sessionId"] = json!(session);
        copilot.event(Source::Hook, name, &payload)
    };
    for name in ["sessionStart", "userPromptSubmitted", "agentStop", "sessionEnd"] {
        assert_eq!(report(&mut copilot, name, "another"), [], "{name}");
    }
    assert_eq!(copilot.copilot("sessionEnd"), [Assertion::Idle, NO_DIALOG]);
    assert_eq!(report(&mut copilot, "sessionStart", "the next"), [NO_DIALOG]);
    assert_eq!(report(&mut copilot, "userPromptSubmitted", "the next"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(copilot.memory.session.as_deref(), Some("the next"));
}

#[test]
fn an_allowed_tool_opens_no_dialog() {
    let mut copilot = AdapterTest::new("copilot");
    copilot.copilot("userPromptSubmitted");
    assert_eq!(copilot.copilot("permissionRequest.allowed"), []);
    assert_eq!(copilot.copilot("permissionRequest"), [], "a notification follows at once if copilot asks the user");
    assert_eq!(copilot.copilot("notification.permission_prompt"), [APPROVAL]);
}

#[test]
fn a_subagent_of_copilot_does_not_start_or_end_a_turn() {
    let mut copilot = AdapterTest::new("copilot");
    copilot.copilot("userPromptSubmitted");
    assert_eq!(copilot.copilot("subagentStart"), []);
    assert_eq!(copilot.copilot("userPromptSubmitted.subagent"), [Assertion::Running]);
    assert_eq!(copilot.copilot("agentStop.subagent"), []);
    assert_eq!(copilot.copilot("subagentStop"), []);
    assert_eq!(copilot.advance(1_000), None, "the main agent continues");
    assert_eq!(copilot.memory.session.as_deref(), Some(SESSION));
    copilot.copilot("agentStop");
    assert_eq!(copilot.advance(1_000), Some(Assertion::Completed));
}

#[test]
fn a_first_event_from_a_subagent_gives_the_session_of_its_parent() {
    let mut copilot = AdapterTest::new("copilot");
    assert_eq!(copilot.copilot("agentStop.subagent"), []);
    assert_eq!(copilot.memory.session.as_deref(), Some(SESSION));
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NO_DIALOG]);
}

#[test]
fn a_recoverable_error_of_copilot_is_ignored() {
    let mut copilot = AdapterTest::new("copilot");
    copilot.copilot("userPromptSubmitted");
    for name in ["errorOccurred", "errorOccurred.retry"] {
        assert_eq!(copilot.copilot(name), [], "{name}");
    }
    let mut fatal = copilot.recorded("errorOccurred");
    fatal["sessionId"] = json!(SESSION);
    fatal["recoverable"] = json!(false);
    assert_eq!(copilot.event(Source::Hook, "errorOccurred", &fatal), [Assertion::Failed, NO_DIALOG]);
}

#[test]
fn a_queued_prompt_of_copilot_keeps_it_running() {
    let mut copilot = AdapterTest::new("copilot");
    copilot.copilot("userPromptSubmitted");
    copilot.copilot("agentStop");
    assert_eq!(copilot.advance(350), None);
    assert_eq!(copilot.copilot("userPromptSubmitted"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(copilot.advance(1_000), None, "the end of the first turn is dropped");
}

#[test]
fn copilot_reports_turns_in_its_log() {
    let mut copilot = AdapterTest::new("copilot");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/evidence/logs/copilot.jsonl");
    let log = builtin("copilot").log_file().expect("copilot has a log");
    let (mut prompts, mut ends) = (0, Vec::new());
    for line in std::fs::read_to_string(path).expect("recorded").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert!(log.time(&record).is_some(), "{line}");
        let event_type = log.event_type(&record).expect("a kind");
        // Time passes before the next prompt, so that the held end of the previous turn is reported.
        if event_type == "user.message" && record.get("agentId").is_none() {
            ends.extend(copilot.advance(1_000));
            assert_eq!(ends.len(), prompts, "{line}");
            prompts += 1;
        }
        if builtin("copilot").reads_file_event(event_type) {
            let assertions = copilot.event(Source::File, event_type, &record);
            ends.extend(
                assertions.iter().copied().find(|assertion| matches!(assertion, Assertion::Failed | Assertion::Idle)),
            );
            assert!(!assertions.contains(&Assertion::Completed), "the next step may follow at once");
        }
    }
    ends.extend(copilot.advance(1_000));
    let count = |end| ends.iter().filter(|assertion| **assertion == end).count();
    assert_eq!([Assertion::Completed, Assertion::Failed, Assertion::Idle].map(count), [9, 3, 4], "{ends:?}");
    assert_eq!(copilot.memory.session.as_deref(), Some("343116eb-143a-412e-b8e9-8c52c205f34f"));
}

#[test]
fn copilot_reports_dialogs_in_its_log() {
    let mut copilot = AdapterTest::new("copilot");
    let mut logged = |kind: &str, data: Value| copilot.event(Source::File, kind, &json!({"type": kind, "data": data}));
    assert_eq!(logged("permission.requested", json!({"requestId": "a"})), [APPROVAL]);
    let completed = json!({"requestId": "a", "result": {"kind": "approved"}});
    assert_eq!(logged("permission.completed", completed), [Assertion::Running, NO_DIALOG]);
    assert_eq!(logged("permission.requested", json!({"requestId": "b", "resolvedByHook": true})), []);
    assert_eq!(logged("tool.execution_start", json!({"toolCallId": "c", "toolName": "bash"})), []);
    assert_eq!(logged("tool.execution_start", json!({"toolCallId": "d", "toolName": "ask_user"})), [QUESTION]);
    assert_eq!(logged("human_response.recorded", json!({"toolCallId": "d"})), [Assertion::Running, NO_DIALOG]);
    assert_eq!(logged("permission.requested", json!({"requestId": "e"})), [APPROVAL]);
    assert_eq!(logged("abort", json!({"reason": "user_initiated"})), [Assertion::Idle, NO_DIALOG]);
    assert_eq!(logged("permission.completed", json!({"result": {"kind": "cancelled"}})), [NO_DIALOG]);
}
