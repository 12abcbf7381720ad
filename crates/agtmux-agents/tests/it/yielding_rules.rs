//! Checks which screen rules yield to the agent's own events.

use std::collections::BTreeSet;

use agtmux_agents::CapturedScreen;
use agtmux_core::evidence::Assertion;

use crate::builtin;
use crate::screen_cases::cases;

#[test]
fn only_idle_is_concluded_from_absent_text() {
    let mut yielding = BTreeSet::new();
    for case in cases() {
        let screen = CapturedScreen::parse(case.best());
        // Users can switch titles off, so each screen is also read without a title.
        let readings = [Some(case.title.as_str()), None].map(|title| builtin(&case.agent).read_screen(&screen, title));
        for observation in readings
            .into_iter()
            .flat_map(|reading| reading.observations)
            .filter(|observation| observation.inferred_from_absence)
        {
            assert!(
                matches!(observation.assertion, Assertion::Idle | Assertion::NoDialog),
                "{}: {observation:?}",
                case.name
            );
            yielding.insert(format!("{} {}", case.agent, observation.rule.name));
        }
    }
    for rule in ["codex at-rest", "gemini at-rest", "qwen at-rest"] {
        assert!(yielding.contains(rule), "{rule}: {yielding:?}");
    }
    for rule in
        ["claude at-rest", "claude interrupted", "codex interrupted", "gemini cancelled", "gemini at-rest-by-title"]
    {
        assert!(!yielding.contains(rule), "{rule} matches visible text");
    }
}

#[test]
fn claude_without_its_footer_hint_yields_because_the_spinner_may_be_covered() {
    let line = "─".repeat(60);
    let yields = |status: &str| {
        let text = format!("❯ hello\n\n● Hello to you.\n\n{line}\n❯ what\n{line}\n  {status}\n");
        let reading = builtin("claude").read_screen(&CapturedScreen::parse(text.as_bytes()), None);
        let observation = reading.observations.first().expect("the agent is idle");
        assert_eq!(observation.assertion, Assertion::Idle, "{observation:?}");
        observation.inferred_from_absence
    };
    assert!(yields("a custom status line"));
    assert!(!yields("? for shortcuts"));
}

#[test]
fn a_denied_tool_of_gemini_is_seen_with_and_without_a_title() {
    let denied = cases().into_iter().find(|case| case.name == "gemini-denied-3").expect("the capture exists");
    let screen = CapturedScreen::parse(denied.best());
    for title in [Some(denied.title.as_str()), None] {
        let reading = builtin("gemini").read_screen(&screen, title);
        let observation = reading.observations.first().expect("the agent is idle");
        assert_eq!(
            (observation.assertion, observation.inferred_from_absence),
            (Assertion::Idle, false),
            "{observation:?}"
        );
    }
}

#[test]
fn a_new_conversation_of_codex_differs_from_an_idle_one() {
    let is_anew = |above: &str| {
        let text = format!("{above}\n\n› Ask Codex to do anything\n\n  gpt-5 default · ~/project\n  ? for shortcuts\n");
        let screen = CapturedScreen::parse(text.as_bytes());
        let reading = builtin("codex").read_screen(&screen, Some("project"));
        let observation = reading.observations.first().expect("the agent is idle");
        assert_eq!(observation.assertion, Assertion::Idle, "{observation:?}");
        observation.no_turn_visible
    };
    assert!(is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n\n           ⣀⣤⣤⣤⣀⣀\n"));
    assert!(!is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n› hello\n\n• Hello to you.\n"));
    assert!(!is_anew("  Something else\n"), "the beginning is off the screen");
}
