//! The text in the input boxes of real agents, read from captures.

use agtmux_agents::CapturedScreen;

use crate::builtin;
use crate::screen_cases::{ScreenCase, cases};

/// Captures with typed text, and that text.
const DRAFTS: [(&str, &str); 13] = [
    ("claude-197-60-at", "@"),
    ("claude-200-slash", "/"),
    ("claude-300-slash", "/mo"),
    ("claude-325-ansi-slash", "/"),
    ("claude-325-slash-done", "/"),
    ("codex-166-mentions", "@"),
    ("codex-166-shell-mode", "! ls"),
    ("codex-166-slash", "/"),
    ("codex-166-startup", "SLOW 4"),
    ("codex-80-slash", "/"),
    ("codex-80-typed", "1. foo"),
    ("gemini-80-slash", "/"),
    ("qwen-interrupted", "SLOW 20 x"),
];

fn is_idle(case: &ScreenCase) -> bool {
    case.accept.split('|').any(|state| matches!(state, "idle" | "completed"))
}

/// If a placeholder or suggestion were read as typed text, agtmux would refuse to send a prompt.
#[test]
fn placeholders_of_idle_agents_are_not_typed_text() {
    let (mut problems, mut boxes) = (Vec::new(), 0);
    for case in cases().iter().filter(|case| is_idle(case)) {
        for capture in case.ansi.iter().chain([&case.plain]) {
            let typed = builtin(&case.agent).typed_text(&CapturedScreen::parse(capture));
            boxes += usize::from(typed.is_some());
            let draft = DRAFTS.iter().find(|(name, _)| *name == case.name).map_or("", |(_, text)| *text);
            if typed.as_deref().is_some_and(|typed| typed != draft) {
                problems.push(format!("{} {}: {typed:?}", case.agent, case.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(boxes > 100, "most captures show a box: {boxes}");
}

/// A suggestion looks like the placeholder: its first letter is under the cursor, the rest is faint.
#[test]
fn suggestions_are_not_typed_text() {
    let rule = "─".repeat(60);
    let boxes = [
        ("qwen", "\u{1b}[38;2;203;166;247m> \u{1b}[4m\u{1b}[39mA\u{1b}[0m\u{1b}[38;2;108;112;134mll done.\u{1b}[0m"),
        ("claude", "❯\u{a0}\u{1b}[7mr\u{1b}[0;2mun the tests\u{1b}[0m"),
    ];
    for (agent, shown) in boxes {
        let screen = format!("● said\n\n{rule}\n{shown}\n{rule}\n  ? for shortcuts\n");
        let screen = CapturedScreen::parse(screen.as_bytes());
        assert_eq!(builtin(agent).typed_text(&screen).as_deref(), Some(""), "{agent}");
        assert!(!builtin(agent).shows_suggestion(&screen), "{agent}");
    }
}
