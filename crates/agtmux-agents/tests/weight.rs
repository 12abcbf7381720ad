//! How much of what screens show may be held against what an agent says itself.

mod cases;

use std::collections::BTreeSet;

use agtmux_agents::{AgentRegistry, CapturedScreen};
use agtmux_core::evidence::Assertion;
use cases::cases;

#[test]
fn only_rest_is_concluded_from_what_is_not_to_be_seen() {
    let mut yielding = BTreeSet::new();
    for case in cases() {
        let screen = CapturedScreen::parse(case.best());
        // Titles can be switched off.
        let readings = [Some(case.title.as_str()), None]
            .map(|title| AgentRegistry::builtin().read_screen(&case.agent, &screen, title));
        for said in readings.into_iter().flat_map(|reading| reading.observations).filter(|said| said.yields) {
            assert!(matches!(said.assertion, Assertion::Idle | Assertion::NoDialog), "{}: {said:?}", case.name);
            yielding.insert(format!("{} {}", case.agent, said.rule.name));
        }
    }
    for rule in ["codex at-rest", "gemini at-rest", "qwen at-rest"] {
        assert!(yielding.contains(rule), "{rule}: {yielding:?}");
    }
    for rule in
        ["claude at-rest", "claude interrupted", "codex interrupted", "gemini cancelled", "gemini at-rest-by-title"]
    {
        assert!(!yielding.contains(rule), "{rule} sees something");
    }
}

#[test]
fn claude_without_its_hints_may_have_a_spinner_that_is_covered() {
    let line = "─".repeat(60);
    let yields = |status: &str| {
        let text = format!("❯ hello\n\n● Hello to you.\n\n{line}\n❯ what\n{line}\n  {status}\n");
        let reading = AgentRegistry::builtin().read_screen("claude", &CapturedScreen::parse(text.as_bytes()), None);
        let said = reading.observations.first().expect("it rests");
        assert_eq!(said.assertion, Assertion::Idle, "{said:?}");
        said.yields
    };
    assert!(yields("a status line of one's own"));
    assert!(!yields("? for shortcuts"));
}

#[test]
fn that_a_tool_of_gemini_was_denied_is_seen_with_and_without_a_title() {
    let denied = cases().into_iter().find(|case| case.name == "gemini-denied-3").expect("saved");
    let screen = CapturedScreen::parse(denied.best());
    for title in [Some(denied.title.as_str()), None] {
        let reading = AgentRegistry::builtin().read_screen("gemini", &screen, title);
        let said = reading.observations.first().expect("it rests");
        assert_eq!((said.assertion, said.yields), (Assertion::Idle, false), "{said:?}");
    }
}

#[test]
fn a_conversation_of_codex_that_was_begun_anew_is_told_from_one_at_rest() {
    let is_anew = |above: &str| {
        let text = format!("{above}\n\n› Ask Codex to do anything\n\n  gpt-5 default · ~/project\n  ? for shortcuts\n");
        let screen = CapturedScreen::parse(text.as_bytes());
        let reading = AgentRegistry::builtin().read_screen("codex", &screen, Some("project"));
        let said = reading.observations.first().expect("it rests");
        assert_eq!(said.assertion, Assertion::Idle, "{said:?}");
        said.anew
    };
    assert!(is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n\n           ⣀⣤⣤⣤⣀⣀\n"));
    assert!(!is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n› hello\n\n• Hello to you.\n"));
    assert!(!is_anew("  Something else\n"), "the beginning is out of sight");
}
