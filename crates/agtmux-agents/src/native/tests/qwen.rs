//! Events of Qwen Code. Its hooks are those of Claude Code, with some differences.

use agtmux_core::evidence::Assertion;
use serde_json::json;

use super::{APPROVAL, AdapterTest, NO_DIALOG, QUESTION};

#[test]
fn qwen_reports_a_turn() {
    let mut qwen = AdapterTest::new("qwen");
    assert_eq!(qwen.hook("SessionStart"), [Assertion::Idle], "qwen may still ask whether to trust the directory");
    assert_eq!(qwen.hook("UserPromptSubmit"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(qwen.hook("PermissionRequest"), [APPROVAL]);
    assert_eq!(qwen.hook("Notification.permission_prompt"), [], "already reported");
    assert_eq!(qwen.hook("PreToolUse"), [Assertion::Running, NO_DIALOG], "the event follows the permission");
    assert_eq!(qwen.hook("PostToolUse"), [Assertion::Running]);
    assert_eq!(qwen.hook("Stop"), [NO_DIALOG], "qwen still draws, and a queued prompt may follow");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Completed, NO_DIALOG]);
    assert_eq!(qwen.advance(10_000), None, "the end is reported once");
    assert_eq!(qwen.hook("SessionEnd"), []);
}

#[test]
fn the_empty_prompt_after_a_tool_does_not_close_a_question() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("PermissionRequest");
    assert_eq!(
        qwen.hook("UserPromptSubmit.after_tool"),
        [Assertion::Running],
        "the question may belong to another tool"
    );
    assert_eq!(qwen.hook("PreToolUse"), [Assertion::Running, NO_DIALOG]);
}

#[test]
fn qwen_reports_a_question_by_a_permission_request() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("PermissionRequest.ask_user_question"), [QUESTION]);
    assert_eq!(qwen.hook("PreToolUse.ask_user_question"), [Assertion::Running, NO_DIALOG]);
    assert_eq!(qwen.hook("PostToolUse.ask_user_question"), [Assertion::Running]);
}

#[test]
fn the_notification_alone_reports_an_interruption_of_qwen() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NO_DIALOG]);
    qwen.hook("UserPromptSubmit");
    qwen.hook("PermissionRequest");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NO_DIALOG], "Escape also closes the question");
}

#[test]
fn the_notification_after_the_end_repeats_the_result() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("Stop");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Completed, NO_DIALOG]);
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("StopFailure"), [Assertion::Failed, NO_DIALOG]);
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Failed, NO_DIALOG]);
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NO_DIALOG], "this turn was interrupted");
    assert_eq!(
        qwen.hook("StopFailure"),
        [Assertion::Failed, NO_DIALOG],
        "hooks run in parallel: this one may arrive later"
    );
}

#[test]
fn a_turn_of_qwen_ends_without_the_notification() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("Stop");
    assert_eq!(qwen.advance(900), None);
    assert_eq!(qwen.advance(200), Some(Assertion::Completed));
    qwen.hook("Stop");
    assert_eq!(qwen.hook("UserPromptSubmit"), [Assertion::Running, NO_DIALOG], "the next prompt was queued");
    assert_eq!(qwen.advance(10_000), None);
}

#[test]
fn events_of_a_nested_qwen_are_ignored_but_its_next_session_counts() {
    let mut qwen = AdapterTest::new("qwen");
    qwen.hook("UserPromptSubmit");
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let mut inner = qwen.recorded(name);
        inner["session_id"] = json!("another");
        assert_eq!(qwen.hook_payload(&inner), [], "{name}");
    }
    let mut cleared = qwen.recorded("SessionStart");
    (cleared["session_id"], cleared["source"]) = (json!("the next"), json!("clear"));
    assert_eq!(qwen.hook_payload(&cleared), [Assertion::Idle, NO_DIALOG]);
}
