//! Captures that were changed by hand to lead a rule astray. What may be said of each, besides that it is not known.

use std::fs;
use std::path::Path;

use agtmux_agents::{AgentRegistry, SavedScreen, judge};

const REST: &[&str] = &["idle", "completed"];
const APPROVAL: &[&str] = &["waiting_approval"];
const RUNNING: &[&str] = &["running"];

/// Name, title, what it may be taken for.
const SCREENS: &[(&str, &str, &[&str])] = &[
    ("claude-46-plan-options-cut", "✳ Claude Code", APPROVAL),
    ("claude-plan-options-cut", "✳ Claude Code", APPROVAL),
    ("claude-held-question-after-tool", "✳ Claude Code", &["waiting_input"]),
    ("claude-held-question-after-words", "✳ Claude Code", &["waiting_input"]),
    ("claude-list-over-background-agent", "✳ Claude Code", RUNNING),
    ("claude-list-over-background-agent-narrow", "✳ Claude Code", RUNNING),
    ("claude-scrolled-background-agent", "✳ Claude Code", RUNNING),
    ("codex-own-status-line-idle", "proj", REST),
    ("codex-own-status-line-running", "vm", RUNNING),
    ("codex-typed-hint-running", "vm", RUNNING),
    ("codex-two-spaces-sent", "vm", RUNNING),
    ("gemini-read-approval-below-list", "vm", APPROVAL),
    ("gemini-read-approval-quoted-prompt", "vm", APPROVAL),
    ("gemini-says-shell-awaiting", "◇  Ready (proj)", REST),
    ("gemini-tool-output-quotes-sign", "◇  Ready (proj)", REST),
];

#[test]
fn what_leads_a_rule_astray_is_not_judged_wrong() {
    for (name, title, may_be) in SCREENS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/altered/{name}.ansi"));
        let text = fs::read(&path).expect("it is beside this file");
        let agent = name.split('-').next().unwrap_or_default();
        let saved = SavedScreen { text: &text, title: Some(title), command: Some("node") };
        let judged = judge(AgentRegistry::builtin(), agent, &saved);
        let state = judged.state.as_str();
        assert!(state == "unknown" || may_be.contains(&state), "{name}: {state} by {:?}", judged.rule);
    }
}

/// A list may cover that a dialog is held back: the sign in the box is the same then.
#[test]
fn below_a_list_a_turn_is_only_likely() {
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/altered/claude-list-over-held.ansi"));
    let text = text.expect("it is beside this file");
    let saved = SavedScreen { text: &text, title: Some("✳ Claude Code"), command: Some("claude") };
    let judged = judge(AgentRegistry::builtin(), "claude", &saved);
    assert_eq!((judged.state.as_str(), judged.conclusive), ("running", false));
}
