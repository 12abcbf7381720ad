//! What is said only once another source agrees.

use super::*;

#[test]
fn a_turn_of_claude_ends_when_its_status_file_says_so() {
    let mut claude = Story::of("claude");
    let status = |claude: &mut Story, status: &str| claude.event(Source::File, "status", &json!({ "status": status }));
    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    assert_eq!(claude.hook("Stop"), [NOTHING], "others may still decide that it goes on");
    assert_eq!(claude.later(6_000), None);
    assert_eq!(status(&mut claude, "idle"), [Assertion::Completed, NOTHING]);
    assert_eq!(claude.later(1_000), Some(Assertion::Idle), "that of the file");
    assert_eq!(claude.later(100_000), None, "it ends once");

    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    claude.hook("Stop");
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running], "it does go on");
    assert_eq!(claude.hook("Stop"), [NOTHING]);
    assert_eq!(status(&mut claude, "idle"), [Assertion::Completed, NOTHING]);

    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NOTHING], "the file was quicker, or is not there");

    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    claude.hook("Stop");
    assert_eq!(claude.later(61_000), None, "a hook may run the tests of a project");
    assert_eq!(claude.later(601_000), Some(Assertion::Completed), "whatever the file says");
}
