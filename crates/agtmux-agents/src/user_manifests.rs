//! Manifests that a user adds to those of this build.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::adapter::{Adapter, ManifestOrigin};
use crate::manifest::{Manifest, ManifestError};
use crate::registry::{AgentRegistry, RegisteredAgent};

/// Far more than any of ours has.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 10;
/// Each may be a pattern, and patterns take memory.
const MAX_STRINGS: usize = 1000;

/// A manifest and its file as they were found. Reading is the caller's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    pub path: String,
    /// Or why it cannot be read.
    pub text: Result<String, String>,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFault {
    pub error: ManifestError,
    /// The agent whose rules from before the mistake are still in force.
    pub agent_kept: Option<String>,
}

/// What a manifest amounts to, for whoever checks it before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSummary {
    pub adapter: Adapter,
    /// How its process is called.
    pub programs: Vec<String>,
    /// Each kind of rule and how many there are.
    pub rules: Vec<(&'static str, usize)>,
}

/// A user's manifests. A file that becomes faulty keeps its last good version; one that goes takes its agent along.
#[derive(Debug, Default)]
pub struct UserManifests {
    files: BTreeMap<String, UserManifest>,
}

#[derive(Debug)]
struct UserManifest {
    text: Result<String, String>,
    last_good: Option<Arc<Manifest>>,
    error: Option<ManifestError>,
}

impl UserManifests {
    /// Takes in all files that there are now. Says whether anything is different.
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

    /// Those of this build with the user's in place of any that have the same name. Of two files for one agent the first
    /// by name counts. The user's come last: what fits both an agent of ours and one of theirs is theirs.
    pub fn registry(&self) -> AgentRegistry {
        let mut agents: Vec<RegisteredAgent> = AgentRegistry::builtin().agents().to_vec();
        let mut faults = Vec::new();
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (path, entry) in &self.files {
            let manifest = entry.last_good.as_ref();
            let other = manifest.and_then(|manifest| taken.get(manifest.name.as_str()));
            if let (Some(manifest), Some(other)) = (manifest, other) {
                let problem = format!("there is already an agent named '{}', in {other}", manifest.name);
                let error = entry.error.clone().unwrap_or_else(|| ManifestError::for_file(path, problem));
                faults.push(ManifestFault { error, agent_kept: None });
                continue;
            }
            if let Some(manifest) = manifest {
                taken.insert(manifest.name.as_str(), path);
                let replaces = AgentRegistry::builtin().knows(manifest.name.as_str());
                agents.retain(|agent| agent.manifest.name != manifest.name);
                let origin = ManifestOrigin::File { path: path.clone(), replaces };
                agents.push(RegisteredAgent { manifest: manifest.clone(), origin });
            }
            let keeps = manifest.map(|manifest| manifest.name.to_string());
            faults.extend(entry.error.clone().map(|error| ManifestFault { error, agent_kept: keeps }));
        }
        AgentRegistry::new(agents, faults)
    }
}

impl UserManifest {
    fn read(path: &str, text: Result<String, String>, before: Option<Arc<Manifest>>) -> Self {
        let parsed = match &text {
            Ok(text) => parse_within_limits(path, text),
            Err(why) => Err(ManifestError::for_file(path, why.clone())),
        };
        match parsed {
            Ok(manifest) => Self { text, last_good: Some(Arc::new(manifest)), error: None },
            Err(error) => Self { text, last_good: before, error: Some(error) },
        }
    }
}

/// Within bounds: compiling it must take neither long nor much memory.
fn parse_within_limits(path: &str, text: &str) -> Result<Manifest, ManifestError> {
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        let problem = format!("has more than {} KiB: that is no manifest", MAX_MANIFEST_BYTES >> 10);
        return Err(ManifestError::for_file(path, problem));
    }
    // What cannot be parsed is told of by whoever needs it parsed.
    let texts = DeTable::parse(text).map_or(0, |document| count_strings(document.get_ref()));
    if texts > MAX_STRINGS {
        return Err(ManifestError::for_file(
            path,
            format!("has {texts} texts and patterns, {MAX_STRINGS} at the most"),
        ));
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

/// What one file would be.
pub fn check_manifest(path: &str, text: &str) -> Result<ManifestSummary, ManifestError> {
    let manifest = parse_within_limits(path, text)?;
    let replaces = AgentRegistry::builtin().knows(manifest.name.as_str());
    let origin = ManifestOrigin::File { path: path.to_owned(), replaces };
    let rules = manifest.rules();
    Ok(ManifestSummary {
        programs: manifest.process.programs().to_vec(),
        rules: vec![
            ("screen", rules.screen.len()),
            ("dialog", rules.dialog.len()),
            ("title", rules.title.len()),
            ("event", manifest.event.len()),
        ],
        adapter: Adapter::from_manifest(&manifest, &origin),
    })
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
        registry.adapters().find(|adapter| adapter.name == name).map(|adapter| adapter.origin)
    }

    fn problems(registry: &AgentRegistry) -> Vec<(String, Option<&str>)> {
        registry.faults().iter().map(|fault| (fault.error.to_string(), fault.agent_kept.as_deref())).collect()
    }

    #[test]
    fn one_is_added_replaced_and_taken_away() {
        let mut user = UserManifests::default();
        assert!(!user.update([]));
        assert!(user.update([file("/a/otto.toml", &agent("otto", "otto")), file("/a/pi.toml", &agent("pi", "my-pi"))]));
        let registry = user.registry();
        assert_eq!(
            origin(&registry, "otto"),
            Some(ManifestOrigin::File { path: "/a/otto.toml".into(), replaces: false })
        );
        assert_eq!(origin(&registry, "pi"), Some(ManifestOrigin::File { path: "/a/pi.toml".into(), replaces: true }));
        assert_eq!(registry.agent_types().filter(|name| name.as_str() == "pi").count(), 1);
        assert_eq!(origin(&registry, "claude"), Some(ManifestOrigin::BuiltIn));
        assert_eq!(registry.changed_agents(AgentRegistry::builtin()), ["otto", "pi"]);
        assert!(
            !user.update([file("/a/otto.toml", &agent("otto", "otto")), file("/a/pi.toml", &agent("pi", "my-pi"))])
        );
        assert_eq!(user.registry().changed_agents(&registry), [""; 0], "what did not change is the same");
        assert!(user.update([]));
        assert_eq!(user.registry().changed_agents(&registry), ["otto", "pi"]);
        assert_eq!(user.registry().changed_agents(AgentRegistry::builtin()), [""; 0]);
    }

    #[test]
    fn a_mistake_keeps_what_was_good_and_harms_nobody_else() {
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
        let told = problems(&registry);
        assert!(told[0].0.starts_with("/a/new.toml:1: written for contract 7") && told[0].1.is_none(), "{told:?}");
        assert!(told[1].0.starts_with("/a/otto.toml:2: ") && told[1].1 == Some("otto"), "{told:?}");
        user.update([ManifestFile { path: "/a/otto.toml".into(), text: Err("is no plain file".into()) }]);
        assert_eq!(problems(&user.registry()), [("/a/otto.toml: is no plain file".into(), Some("otto"))]);
    }

    #[test]
    fn of_two_files_for_one_agent_the_first_counts() {
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
    fn what_is_too_much_is_refused() {
        let refused = |text: &str| check_manifest("x.toml", text).expect_err("too much").to_string();
        assert!(refused(&"#".repeat(70_000)).contains("more than 64 KiB"));
        let many = format!("{}scripts = [{}]", agent("x", "x"), "'a',".repeat(1001));
        assert!(refused(&many).contains("1003 texts and patterns, 1000 at the most"), "{}", refused(&many));
        // As deep as a parser may go, and not deeper.
        assert!(refused(&format!("{}a = {}", agent("x", "x"), "[".repeat(30_000))).starts_with("x.toml:"));
    }

    #[test]
    fn the_worst_pattern_that_is_taken_comes_to_an_end() {
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
        assert_eq!(crate::judge(&registry, "x", &saved).rule, None);
    }

    #[test]
    fn a_check_tells_what_it_amounts_to() {
        let checked = check_manifest("x.toml", &agent("codex", "x")).expect("good");
        assert_eq!((checked.programs.as_slice(), checked.adapter.name.as_str()), (&["x".to_owned()][..], "codex"));
        assert_eq!(checked.adapter.origin, ManifestOrigin::File { path: "x.toml".into(), replaces: true });
        assert!(checked.rules.iter().all(|(_, count)| *count == 0));
    }
}
