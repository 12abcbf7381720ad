//! Captures that were edited by hand to mislead a rule. Each one has a list of acceptable states; the state `unknown`
//! is always acceptable.

use std::fs;
use std::path::Path;

use agtmux_agents::{SavedScreen, judge};

use crate::builtin;

const IDLE: &[&str] = &["idle", "completed"];
const APPROVAL: &[&str] = &["waiting_approval"];
const RUNNING: &[&str] = &["running"];

/// Name, title, acceptable states.
const SCREENS: &[(&str, &str, &[&str])] = &[
    ("claude-46-plan-options-cut", "✳ Claude Code", APPROVAL),
    ("claude-plan-options-cut", "✳ Claude Code", APPROVAL),
    ("claude-held-question-after-tool", "✳ Claude Code", &["waiting_input"]),
    ("claude-held-question-after-words", "✳ Claude Code", &["waiting_input"]),
    ("claude-list-over-background-agent", "✳ Claude Code", RUNNING),
    ("claude-list-over-background-agent-narrow", "✳ Claude Code", RUNNING),
    ("claude-scrolled-background-agent", "✳ Claude Code", RUNNING),
    ("codex-own-status-line-idle", "proj", IDLE),
    ("codex-own-status-line-running", "vm", RUNNING),
    ("codex-typed-hint-running", "vm", RUNNING),
    ("codex-two-spaces-sent", "vm", RUNNING),
    ("gemini-read-approval-below-list", "vm", APPROVAL),
    ("gemini-read-approval-quoted-prompt", "vm", APPROVAL),
    ("gemini-says-shell-awaiting", "◇  Ready (proj)", IDLE),
    ("gemini-tool-output-quotes-sign", "◇  Ready (proj)", IDLE),
];

#[test]
fn misleading_screens_are_judged_correctly_or_as_unknown() {
    for (name, title, acceptable) in SCREENS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/misleading_screens/{name}.ansi"));
        let text = fs::read(&path).expect("the capture exists");
        let agent = name.split('-').next().unwrap_or_default();
        let saved = SavedScreen { text: &text, title: Some(title), command: Some("node") };
        let judged = judge(builtin(agent), &saved);
        let state = judged.state.as_str();
        assert!(state == "unknown" || acceptable.contains(&state), "{name}: {state} by {:?}", judged.rule);
    }
}

/// A list on this screen may cover the notice of a delayed dialog. The prompt sign looks the same with and without such
/// a dialog, so agtmux cannot be sure that the turn is running.
#[test]
fn a_running_turn_below_a_list_is_not_conclusive() {
    let text =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/misleading_screens/claude-list-over-held.ansi"));
    let text = text.expect("the capture exists");
    let saved = SavedScreen { text: &text, title: Some("✳ Claude Code"), command: Some("claude") };
    let judged = judge(builtin("claude"), &saved);
    assert_eq!((judged.state.as_str(), judged.conclusive), ("running", false));
}
