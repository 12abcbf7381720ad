//! A user's manifest with arbitrary contents either works, or is rejected with an error that names the file and, if
//! known, the line.

use agtmux_agents::{AgentRegistry, ManifestFile, SavedScreen, UserManifests, check_manifest, judge};
use proptest::prelude::*;

fn damaged(source: &str, edits: &[(prop::sample::Index, u8, String)]) -> String {
    let mut lines: Vec<String> = source.lines().map(Into::into).collect();
    for (at, how, text) in edits {
        let at = at.index(lines.len());
        match how {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, text.clone()),
            2 => lines[at] = lines[at].replace('\'', text),
            3 => lines[at] = lines[at].chars().rev().collect(),
            _ => lines.swap(at, 0),
        }
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_manifest_is_rejected_or_works(
        agent in prop::sample::select(vec!["aider", "gemini", "pi"]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..5, ".{0,12}"), 1..4),
    ) {
        let text = damaged(AgentRegistry::builtin_manifest_text(agent).expect("the agent is built in"), &edits);
        match check_manifest("x.toml", &text) {
            Err(error) => {
                prop_assert!(error.to_string().starts_with("x.toml:"));
                prop_assert!(error.line.is_none_or(|line| line >= 1 && line <= text.lines().count() + 1), "{error}");
            }
            Ok(checked) => {
                let mut user = UserManifests::default();
                user.update([ManifestFile { path: "x.toml".into(), text: Ok(text) }]);
                let saved = SavedScreen { text: b"> hello\n\n1. Yes\n", title: Some("x"), command: None };
                let registry = user.registry();
                judge(registry.agent(checked.name().as_str()).expect("the agent is loaded"), &saved);
            }
        }
    }

    #[test]
    fn checking_a_manifest_accepts_any_text(text in any::<String>()) {
        let _ = check_manifest("x.toml", &text);
        let _ = check_manifest("x.toml", &format!("contract = 1\nname = 'x'\n{text}"));
    }
}
