//! What stands in the input boxes of real agents, as their captures show them.

mod cases;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use cases::{Case, cases};

/// Captures in which somebody had typed something, and what.
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

fn rests(case: &Case) -> bool {
    case.accept.split('|').any(|state| matches!(state, "idle" | "completed"))
}

/// Placeholders and suggestions are not drafts: a send would be refused for them.
#[test]
fn nothing_is_typed_while_agents_rest() {
    let registry = AgentRegistry::builtin();
    let (mut problems, mut boxes) = (Vec::new(), 0);
    for case in cases().iter().filter(|case| rests(case)) {
        for capture in case.ansi.iter().chain([&case.plain]) {
            let typed = registry.typed_text(&case.agent, &CapturedScreen::parse(capture));
            boxes += usize::from(typed.is_some());
            let draft = DRAFTS.iter().find(|(name, _)| *name == case.name).map_or("", |(_, text)| *text);
            if typed.as_deref().is_some_and(|typed| typed != draft) {
                problems.push(format!("{} {}: {typed:?}", case.agent, case.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(boxes > 100, "most of them show a box: {boxes}");
}

/// A suggestion looks like the placeholder: its first letter is under the cursor, the rest recedes.
#[test]
fn suggestions_are_not_typed() {
    let rule = "─".repeat(60);
    let boxes = [
        ("qwen", "\u{1b}[38;2;203;166;247m> \u{1b}[4m\u{1b}[39mA\u{1b}[0m\u{1b}[38;2;108;112;134mll done.\u{1b}[0m"),
        ("claude", "❯\u{a0}\u{1b}[7mr\u{1b}[0;2mun the tests\u{1b}[0m"),
    ];
    for (agent, shown) in boxes {
        let screen = format!("● said\n\n{rule}\n{shown}\n{rule}\n  ? for shortcuts\n");
        let screen = CapturedScreen::parse(screen.as_bytes());
        assert_eq!(AgentRegistry::builtin().typed_text(agent, &screen).as_deref(), Some(""), "{agent}");
        assert!(!AgentRegistry::builtin().shows_suggestion(agent, &screen), "{agent}");
    }
}
