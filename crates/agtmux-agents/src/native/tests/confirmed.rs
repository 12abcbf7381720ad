//! Observations that wait for the confirmation of another source.

use super::*;

#[test]
fn a_turn_of_claude_ends_when_its_status_file_says_so() {
    let mut claude = AdapterTest::new("claude");
    let status =
        |claude: &mut AdapterTest, status: &str| claude.event(Source::File, "status", &json!({ "status": status }));
    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    assert_eq!(claude.hook("Stop"), [NO_DIALOG], "other hooks may continue the turn");
    assert_eq!(claude.advance(6_000), None);
    assert_eq!(status(&mut claude, "idle"), [Assertion::Completed, NO_DIALOG]);
    assert_eq!(claude.advance(2_500), Some(Assertion::Idle), "the report of the file");
    assert_eq!(claude.advance(100_000), None, "the turn ends once");

    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    claude.hook("Stop");
    assert_eq!(claude.hook("PreToolUse"), [Assertion::Running], "the turn continues");
    assert_eq!(claude.hook("Stop"), [NO_DIALOG]);
    assert_eq!(status(&mut claude, "idle"), [Assertion::Completed, NO_DIALOG]);

    claude.hook("UserPromptSubmit");
    assert_eq!(claude.hook("Stop"), [Assertion::Completed, NO_DIALOG], "the file was faster, or does not exist");

    claude.hook("UserPromptSubmit");
    status(&mut claude, "busy");
    claude.hook("Stop");
    assert_eq!(claude.advance(61_000), None, "a hook may take long, for example to run tests");
    assert_eq!(
        claude.advance(601_000),
        Some(Assertion::Completed),
        "released after the timeout, regardless of the file"
    );
}
