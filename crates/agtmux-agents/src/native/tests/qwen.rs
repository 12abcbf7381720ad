//! Qwen Code: hooks as Claude Code has them, with habits of their own.

use agtmux_core::evidence::Assertion;
use serde_json::json;

use super::{ASKS, NOTHING, QUESTION, Story};

#[test]
fn a_turn_of_qwen() {
    let mut qwen = Story::of("qwen");
    assert_eq!(qwen.hook("SessionStart"), [Assertion::Idle], "it may still ask whether to trust the directory");
    assert_eq!(qwen.hook("UserPromptSubmit"), [Assertion::Running, NOTHING]);
    assert_eq!(qwen.hook("PermissionRequest"), [ASKS]);
    assert_eq!(qwen.hook("Notification.permission_prompt"), [], "known already");
    assert_eq!(qwen.hook("PreToolUse"), [Assertion::Running, NOTHING], "it comes once the tool is allowed");
    assert_eq!(qwen.hook("PostToolUse"), [Assertion::Running]);
    assert_eq!(qwen.hook("Stop"), [NOTHING], "it is still drawing, and a queued prompt may follow");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Completed, NOTHING]);
    assert_eq!(qwen.later(10_000), None, "nothing is told twice");
    assert_eq!(qwen.hook("SessionEnd"), []);
}

#[test]
fn the_empty_prompt_after_a_tool_answers_no_question() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("PermissionRequest");
    assert_eq!(qwen.hook("UserPromptSubmit.after_tool"), [Assertion::Running], "the question may be another tool's");
    assert_eq!(qwen.hook("PreToolUse"), [Assertion::Running, NOTHING]);
}

#[test]
fn a_question_of_qwen_is_asked_as_if_it_were_for_permission() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("PermissionRequest.ask_user_question"), [QUESTION]);
    assert_eq!(qwen.hook("PreToolUse.ask_user_question"), [Assertion::Running, NOTHING]);
    assert_eq!(qwen.hook("PostToolUse.ask_user_question"), [Assertion::Running]);
}

#[test]
fn an_interruption_of_qwen_is_told_by_its_notification_alone() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NOTHING]);
    qwen.hook("UserPromptSubmit");
    qwen.hook("PermissionRequest");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NOTHING], "Escape answers the question, too");
}

#[test]
fn the_notification_after_the_end_tells_how_it_ended() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("Stop");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Completed, NOTHING]);
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("StopFailure"), [Assertion::Failed, NOTHING]);
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Failed, NOTHING]);
    qwen.hook("UserPromptSubmit");
    assert_eq!(qwen.hook("Notification.idle_prompt"), [Assertion::Idle, NOTHING], "this turn was interrupted");
    assert_eq!(qwen.hook("StopFailure"), [Assertion::Failed, NOTHING], "they run side by side: it may come later");
}

#[test]
fn a_turn_of_qwen_ends_also_without_the_notification() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    qwen.hook("Stop");
    assert_eq!(qwen.later(900), None);
    assert_eq!(qwen.later(200), Some(Assertion::Completed));
    qwen.hook("Stop");
    assert_eq!(qwen.hook("UserPromptSubmit"), [Assertion::Running, NOTHING], "the next prompt was queued");
    assert_eq!(qwen.later(10_000), None);
}

#[test]
fn another_qwen_below_it_does_not_speak_for_it_but_its_next_session_does() {
    let mut qwen = Story::of("qwen");
    qwen.hook("UserPromptSubmit");
    for name in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let mut inner = qwen.recorded(name);
        inner["session_id"] = json!("another");
        assert_eq!(qwen.say(&inner), [], "{name}");
    }
    let mut cleared = qwen.recorded("SessionStart");
    (cleared["session_id"], cleared["source"]) = (json!("the next"), json!("clear"));
    assert_eq!(qwen.say(&cleared), [Assertion::Idle, NOTHING]);
}
