//! How much of what screens show may be held against what an agent says itself.

mod cases;

use std::collections::BTreeSet;

use agtmux_agents::{Registry, Screen};
use agtmux_core::evidence::Stand;
use cases::cases;

#[test]
fn only_rest_is_concluded_from_what_is_not_to_be_seen() {
    let mut yielding = BTreeSet::new();
    for case in cases() {
        let text = case.ansi.as_ref().unwrap_or(&case.plain);
        let reading = Registry::builtin().read_screen(&case.agent, &Screen::parse(text), Some(&case.title));
        for said in reading.stands.into_iter().filter(|said| said.yields) {
            assert!(matches!(said.stand, Stand::Idle | Stand::AsksNothing), "{}: {said:?}", case.name);
            yielding.insert(format!("{} {}", case.agent, said.rule.name));
        }
    }
    for rule in ["claude at-rest-typing", "codex at-rest", "gemini at-rest", "qwen at-rest"] {
        assert!(yielding.contains(rule), "{rule}: {yielding:?}");
    }
    for rule in ["claude at-rest", "claude interrupted", "codex interrupted"] {
        assert!(!yielding.contains(rule), "{rule} sees something");
    }
}

#[test]
fn a_conversation_of_codex_that_was_begun_anew_is_told_from_one_at_rest() {
    let is_anew = |above: &str| {
        let text = format!("{above}\n\n› Ask Codex to do anything\n\n  gpt-5 default · ~/project\n  ? for shortcuts\n");
        let screen = Screen::parse(text.as_bytes());
        let reading = Registry::builtin().read_screen("codex", &screen, Some("project"));
        let said = reading.stands.first().expect("it rests");
        assert_eq!(said.stand, Stand::Idle, "{said:?}");
        said.anew
    };
    assert!(is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n\n           ⣀⣤⣤⣤⣀⣀\n"));
    assert!(!is_anew("  >_ OpenAI Codex (v0.166.0)\n     ~/project\n\n› hello\n\n• Hello to you.\n"));
    assert!(!is_anew("  Something else\n"), "the beginning is out of sight");
}
