//! The session id in Claude Code's status file.

use super::*;

fn status(session: &str) -> Value {
    json!({"sessionId": session, "status": "busy", "statusUpdatedAt": 1_000_000_000})
}

#[test]
fn the_status_file_names_the_session_of_an_agent_without_hooks() {
    let mut claude = AdapterTest::new("claude");
    assert_eq!(claude.event(Source::File, "status", &status("first")), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.memory.session.as_deref(), Some("first"));
    // `/clear` starts another session in the same process.
    assert_eq!(claude.event(Source::File, "status", &status("second")), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.memory.session.as_deref(), Some("second"));
}

#[test]
fn hooks_outrank_the_session_in_the_status_file() {
    let mut claude = AdapterTest::new("claude");
    claude.event(Source::File, "status", &status("old"));
    claude.hook("SessionStart.startup");
    let session = claude.memory.session.clone();
    assert_ne!(session.as_deref(), Some("old"));
    // The file may still name the previous session. Its status counts, but the session id does not change.
    assert_eq!(claude.event(Source::File, "status", &status("old")), [Assertion::Running, NO_DIALOG]);
    assert_eq!(claude.memory.session, session);
    assert_eq!(claude.hook("UserPromptSubmit"), [Assertion::Running, NO_DIALOG]);
}
