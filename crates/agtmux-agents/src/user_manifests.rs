//! Manifests that a user adds to the built-in ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::adapter::ManifestOrigin;
use crate::known_agent::KnownAgent;
use crate::manifest::{Manifest, ManifestError};
use crate::registry::AgentRegistry;

/// The maximum size of a manifest. The built-in manifests are much smaller.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 10;
/// The maximum number of strings in a manifest. Each one may be a pattern, and patterns take memory.
const MAX_STRINGS: usize = 1000;

/// A manifest file and its text. The caller reads the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    pub path: String,
    /// The text, or the reason why the file cannot be read.
    pub text: Result<String, String>,
}

/// A manifest file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFault {
    pub error: ManifestError,
    /// The agent that the last valid version of the file describes. That version stays in use. None if no version of
    /// the file is in use.
    pub agent_kept: Option<String>,
}

/// The user's manifests. If a file becomes invalid, its last valid version stays in use. Deleting a file removes its
/// agent.
#[derive(Debug, Default)]
pub struct UserManifests {
    files: BTreeMap<String, UserManifest>,
}

#[derive(Debug)]
struct UserManifest {
    text: Result<String, String>,
    last_good: Option<Arc<KnownAgent>>,
    error: Option<ManifestError>,
}

impl UserManifests {
    /// Replaces the known files with `found`. Returns whether a file is new, changed or gone.
    pub fn update(&mut self, found: impl IntoIterator<Item = ManifestFile>) -> bool {
        let mut before = std::mem::take(&mut self.files);
        let mut changed = false;
        for ManifestFile { path, text } in found {
            let known = before.remove(&path);
            let entry = match known {
                Some(entry) if entry.text == text => entry,
                known => {
                    changed = true;
                    UserManifest::read(&path, text, known.and_then(|entry| entry.last_good))
                }
            };
            self.files.insert(path, entry);
        }
        changed || !before.is_empty()
    }

    /// Builds a registry of the built-in manifests and the user's. A user's manifest replaces a built-in one of the
    /// same name. If two files describe the same agent, the first one by path is used. User manifests come last, so
    /// that they win if a process matches both a user's agent and a built-in one.
    pub fn registry(&self) -> AgentRegistry {
        let mut agents = AgentRegistry::builtin().agents().to_vec();
        let mut faults = Vec::new();
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (path, entry) in &self.files {
            let name = entry.last_good.as_ref().map(|agent| agent.name().as_str());
            if let Some((name, other)) = name.and_then(|name| Some((name, taken.get(name)?))) {
                let problem = format!("there is already an agent named '{name}', in {other}");
                let error = entry.error.clone().unwrap_or_else(|| ManifestError::for_file(path, problem));
                faults.push(ManifestFault { error, agent_kept: None });
                continue;
            }
            if let Some(agent) = &entry.last_good {
                taken.insert(agent.name().as_str(), path);
                agents.retain(|other| other.name() != agent.name());
                agents.push(agent.clone());
            }
            let keeps = name.map(str::to_owned);
            faults.extend(entry.error.clone().map(|error| ManifestFault { error, agent_kept: keeps }));
        }
        AgentRegistry::new(agents, faults)
    }
}

impl UserManifest {
    fn read(path: &str, text: Result<String, String>, before: Option<Arc<KnownAgent>>) -> Self {
        let parsed = match &text {
            Ok(text) => check_manifest(path, text),
            Err(why) => Err(ManifestError::for_file(path, why.clone())),
        };
        match parsed {
            Ok(agent) => Self { text, last_good: Some(Arc::new(agent)), error: None },
            Err(error) => Self { text, last_good: before, error: Some(error) },
        }
    }
}

/// Parses one manifest without adding its agent to a registry.
pub fn check_manifest(path: &str, text: &str) -> Result<KnownAgent, ManifestError> {
    let manifest = parse_within_limits(path, text)?;
    let replaces = AgentRegistry::builtin().agent(manifest.name.as_str()).is_some();
    Ok(KnownAgent { manifest, origin: ManifestOrigin::File { path: path.to_owned(), replaces } })
}

/// Checks the size of a manifest, then parses it. The limits bound the time and memory for compiling its patterns.
fn parse_within_limits(path: &str, text: &str) -> Result<Manifest, ManifestError> {
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        let problem = format!("is larger than {} KiB, the limit for a manifest", MAX_MANIFEST_BYTES >> 10);
        return Err(ManifestError::for_file(path, problem));
    }
    // If the text is not valid TOML, count no strings here: `Manifest::parse` below reports the syntax error.
    let strings = DeTable::parse(text).map_or(0, |document| count_strings(document.get_ref()));
    if strings > MAX_STRINGS {
        return Err(ManifestError::for_file(path, format!("has {strings} strings; the limit is {MAX_STRINGS}")));
    }
    Manifest::parse(path, text)
}

fn count_strings(table: &DeTable<'_>) -> usize {
    table.iter().map(|(_, value)| count_strings_in(value.get_ref())).sum()
}

fn count_strings_in(value: &DeValue<'_>) -> usize {
    match value {
        DeValue::String(_) => 1,
        DeValue::Array(items) => items.iter().map(|item| count_strings_in(item.get_ref())).sum(),
        DeValue::Table(table) => count_strings(table),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> ManifestFile {
        ManifestFile { path: path.into(), text: Ok(text.into()) }
    }

    fn agent(name: &str, program: &str) -> String {
        format!("contract = 1\nname = '{name}'\n[process]\nprograms = ['{program}']\n")
    }

    fn origin(registry: &AgentRegistry, name: &str) -> Option<ManifestOrigin> {
        registry.agent(name).map(|agent| agent.origin().clone())
    }

    fn problems(registry: &AgentRegistry) -> Vec<(String, Option<&str>)> {
        registry.faults().iter().map(|fault| (fault.error.to_string(), fault.agent_kept.as_deref())).collect()
    }

    #[test]
    fn user_manifests_are_added_replaced_and_removed() {
        let mut user = UserManifests::default();
        assert!(!user.update([]));
        assert!(user.update([file("/a/otto.toml", &agent("otto", "otto")), file("/a/pi.toml", &agent("pi", "my-pi"))]));
        let registry = user.registry();
        assert_eq!(
            origin(&registry, "otto"),
            Some(ManifestOrigin::File { path: "/a/otto.toml".into(), replaces: false })
        );
        assert_eq!(origin(&registry, "pi"), Some(ManifestOrigin::File { path: "/a/pi.toml".into(), replaces: true }));
        assert_eq!(registry.names().iter().filter(|name| *name == "pi").count(), 1);
        assert_eq!(origin(&registry, "claude"), Some(ManifestOrigin::BuiltIn));
        assert_eq!(registry.changed_agents(AgentRegistry::builtin()), ["otto", "pi"]);
        assert!(
            !user.update([file("/a/otto.toml", &agent("otto", "otto")), file("/a/pi.toml", &agent("pi", "my-pi"))])
        );
        assert_eq!(user.registry().changed_agents(&registry), [""; 0], "unchanged files give the same registry");
        assert!(user.update([]));
        assert_eq!(user.registry().changed_agents(&registry), ["otto", "pi"]);
        assert_eq!(user.registry().changed_agents(AgentRegistry::builtin()), [""; 0]);
    }

    #[test]
    fn an_invalid_file_keeps_its_last_valid_version_and_does_not_affect_other_files() {
        let mut user = UserManifests::default();
        let other = || file("/a/b.toml", &agent("b", "b"));
        user.update([file("/a/otto.toml", &agent("otto", "otto")), other()]);
        let good = user.registry();
        assert!(user.update([
            file("/a/otto.toml", "contract = 1\nname ="),
            other(),
            file("/a/new.toml", "contract = 7")
        ]));
        let registry = user.registry();
        assert_eq!(registry.changed_agents(&good), [""; 0]);
        let faults = problems(&registry);
        assert!(
            faults[0].0.starts_with("/a/new.toml:1: written for contract 7") && faults[0].1.is_none(),
            "{faults:?}"
        );
        assert!(faults[1].0.starts_with("/a/otto.toml:2: ") && faults[1].1 == Some("otto"), "{faults:?}");
        user.update([ManifestFile { path: "/a/otto.toml".into(), text: Err("is not a regular file".into()) }]);
        assert_eq!(problems(&user.registry()), [("/a/otto.toml: is not a regular file".into(), Some("otto"))]);
    }

    #[test]
    fn the_first_of_two_files_for_one_agent_counts() {
        let mut user = UserManifests::default();
        user.update([file("/a/2.toml", &agent("otto", "two")), file("/a/1.toml", &agent("otto", "one"))]);
        let registry = user.registry();
        assert_eq!(origin(&registry, "otto"), Some(ManifestOrigin::File { path: "/a/1.toml".into(), replaces: false }));
        assert_eq!(
            problems(&registry),
            [("/a/2.toml: there is already an agent named 'otto', in /a/1.toml".into(), None)]
        );
    }

    #[test]
    fn manifests_that_are_too_large_are_rejected() {
        let refused = |text: &str| check_manifest("x.toml", text).expect_err("too much").to_string();
        assert!(refused(&"#".repeat(70_000)).contains("larger than 64 KiB"));
        let many = format!("{}scripts = [{}]", agent("x", "x"), "'a',".repeat(1001));
        assert!(refused(&many).contains("1003 strings; the limit is 1000"), "{}", refused(&many));
        // Deep nesting must not overflow the stack of the parser.
        assert!(refused(&format!("{}a = {}", agent("x", "x"), "[".repeat(30_000))).starts_with("x.toml:"));
    }

    #[test]
    fn the_slowest_accepted_pattern_terminates() {
        let with = |pattern: &str| {
            let layout = "[layout]\nprompt = '^>'\nfooter = 1\n";
            let rule = format!(
                "[[screen]]\nname = 'r'\nregion = 'whole'\nneeds = 'nothing'\nall = ['{pattern}']\nstate = 'idle'\n"
            );
            agent("x", "x") + layout + &rule
        };
        assert!(check_manifest("x.toml", &with(r"(\w{1,200}\s?){1,200}x")).is_err(), "too large");
        let mut user = UserManifests::default();
        assert!(user.update([file("/a/x.toml", &with("(a|b)*a([ab]|ac){800}z"))]));
        let registry = user.registry();
        assert_eq!(registry.faults(), []);
        let screen = format!("{}z\n", "aab".repeat(100)).repeat(200);
        let saved = crate::SavedScreen { text: screen.as_bytes(), title: None, command: None };
        assert_eq!(crate::judge(registry.agent("x").expect("the agent is loaded"), &saved).rule, None);
    }

    #[test]
    fn a_check_returns_the_agent_of_the_manifest() {
        let checked = check_manifest("x.toml", &agent("codex", "x")).expect("valid manifest");
        assert_eq!((checked.programs(), checked.name().as_str()), (&["x".to_owned()][..], "codex"));
        assert_eq!(checked.origin(), &ManifestOrigin::File { path: "x.toml".into(), replaces: true });
        assert!(checked.rule_counts().iter().all(|(_, count)| *count == 0));
        // `agtmux setup` uses the built-in manifest, even if a user's manifest replaces it.
        for name in ["codex", "x"] {
            let text = agent(name, "x") + "[setup]\ntitle = 1\n";
            let manifest = check_manifest("x.toml", &text).expect("valid manifest").manifest;
            let warning = "x.toml:5: 'setup' is read from built-in manifests only and has no effect here";
            assert_eq!((manifest.warnings, manifest.setup), (vec![warning.to_owned()], None));
        }
    }
}
