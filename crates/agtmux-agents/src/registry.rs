//! The registry of all known agents, and the search for the agent in a pane.

use std::sync::{Arc, LazyLock};

use crate::adapter::{Adapter, ManifestOrigin};
use crate::command_line::Invocation;
use crate::foreground::{JobPosition, job_positions};
use crate::generic;
use crate::known_agent::KnownAgent;
use crate::manifest::{Manifest, ManifestError, MatchStrength};
use crate::process::{IdentifiedAgent, ProcessFacts};
use crate::user_manifests::ManifestFault;

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        [$((concat!($name, ".toml"), include_str!(concat!("../manifests/", $name, ".toml")))),+]
    };
}

const EMBEDDED: [(&str, &str); 9] =
    embedded!["aider", "claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"];

static BUILTIN: LazyLock<AgentRegistry> =
    LazyLock::new(|| AgentRegistry::embedded().expect("the embedded manifests are valid"));

#[derive(Debug)]
pub struct AgentRegistry {
    agents: Vec<Arc<KnownAgent>>,
    faults: Vec<ManifestFault>,
}

struct ProcessMatch {
    agent: IdentifiedAgent,
    strength: MatchStrength,
    position: JobPosition,
}

impl AgentRegistry {
    /// The built-in agents. The manifests are read once.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    fn embedded() -> Result<Self, ManifestError> {
        let manifests = EMBEDDED.iter().map(|(file, text)| Manifest::embedded(file, text));
        let agent = |manifest| Arc::new(KnownAgent { manifest, origin: ManifestOrigin::BuiltIn });
        Ok(Self::new(manifests.map(|manifest| manifest.map(agent)).collect::<Result<_, _>>()?, Vec::new()))
    }

    pub(crate) fn new(agents: Vec<Arc<KnownAgent>>, faults: Vec<ManifestFault>) -> Self {
        Self { agents, faults }
    }

    /// The text of a built-in manifest.
    pub fn builtin_manifest_text(name: &str) -> Option<&'static str> {
        EMBEDDED.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name)).map(|(_, text)| *text)
    }

    /// The names of the built-in agents that `agtmux setup` supports. The command-line parser needs the names at every
    /// start, so this function does not parse the manifests.
    pub fn setup_names() -> impl Iterator<Item = &'static str> {
        let supported = EMBEDDED.iter().filter(|(_, text)| text.contains("\n[setup]\n"));
        supported.filter_map(|(file, _)| file.strip_suffix(".toml"))
    }

    pub fn agents(&self) -> &[Arc<KnownAgent>] {
        &self.agents
    }

    /// The agent of this type.
    pub fn agent(&self, agent_type: &str) -> Option<&Arc<KnownAgent>> {
        self.agents.iter().find(|agent| agent.name().as_str() == agent_type)
    }

    /// Whether an event of this type can change a state. True if the type is a generic one, such as the name of a
    /// state, or if an agent has a rule for the type.
    pub fn knows_event_type(&self, event_type: &str) -> bool {
        let has_rule = |agent: &Arc<KnownAgent>| agent.manifest.event.iter().any(|rule| rule.event_type == event_type);
        !generic::assertions(event_type).is_empty() || self.agents.iter().any(has_rule)
    }

    /// The names of all agents, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.agents.iter().map(|agent| agent.name().to_string()).collect();
        names.sort();
        names
    }

    /// The user's manifest files that cannot be used.
    pub fn faults(&self) -> &[ManifestFault] {
        &self.faults
    }

    /// The names of the agents that differ between the two registries, or exist in only one of them.
    pub fn changed_agents(&self, other: &Self) -> Vec<String> {
        let missing =
            |agent: &&Arc<KnownAgent>, from: &Self| !from.agents.iter().any(|other| Arc::ptr_eq(other, agent));
        let here = self.agents.iter().filter(|agent| missing(agent, other));
        let there = other.agents.iter().filter(|agent| missing(agent, self));
        let mut names: Vec<String> = here.chain(there).map(|agent| agent.name().to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The summary of every agent, sorted by name.
    pub fn adapters(&self) -> impl Iterator<Item = Adapter> {
        let mut agents: Vec<&KnownAgent> = self.agents.iter().map(|agent| &**agent).collect();
        agents.sort_by_key(|agent| agent.name());
        agents.into_iter().map(Adapter::from)
    }

    /// Finds the agent that a pane shows: the outermost agent of the foreground job. If the foreground job contains no
    /// agent, finds the outermost stopped agent of the pane. A direct match wins over a weak one at any depth.
    ///
    /// `processes` are all processes of the pane, parents before children. The foreground job is the terminal's
    /// foreground process group and its descendants. Descendants are included because sudo runs its command in another
    /// group, on another terminal. If the foreground group is unknown, every process belongs to the foreground job.
    pub fn identify(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Option<IdentifiedAgent> {
        let matches = self.matches(processes, foreground_pgrp);
        let rank = |m: &&ProcessMatch| (m.strength != MatchStrength::Direct, m.position.depth, m.agent.pid);
        let outermost = |eligible: fn(&&ProcessMatch) -> bool| matches.iter().filter(eligible).min_by_key(rank);
        let found = outermost(|m| m.position.in_foreground).or_else(|| outermost(|m| m.agent.suspended))?;
        Some(found.agent.clone())
    }

    fn matches(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Vec<ProcessMatch> {
        let positions = job_positions(processes, foreground_pgrp);
        let alive = processes.iter().zip(positions).filter(|(process, _)| !process.zombie);
        alive.filter_map(|(process, position)| self.match_one(process, position)).collect()
    }

    fn match_one(&self, process: &ProcessFacts<'_>, position: JobPosition) -> Option<ProcessMatch> {
        let invocation = Invocation::from_process(process);
        let (manifest, strength) = self.judge_process(process, &invocation)?;
        let agent = IdentifiedAgent {
            agent_type: manifest.name.clone(),
            pid: process.pid,
            suspended: process.stopped,
            headless: manifest.process.is_headless(&invocation),
        };
        Some(ProcessMatch { agent, strength, position })
    }

    /// The manifest that matches this process, and how certain the match is.
    pub(crate) fn judge_process(
        &self,
        process: &ProcessFacts<'_>,
        invocation: &Invocation<'_>,
    ) -> Option<(&Manifest, MatchStrength)> {
        let manifests = self.agents.iter().map(|agent| &agent.manifest);
        let judged = manifests.filter_map(|m| Some((m, m.process.match_process(process, invocation)?)));
        judged.max_by_key(|(_, strength)| *strength)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_manifests_have_no_warnings() {
        for agent in AgentRegistry::builtin().agents() {
            assert_eq!(agent.manifest.warnings, [""; 0], "{}", agent.name());
        }
    }

    #[test]
    fn every_manifest_file_is_embedded_under_its_name() {
        let directory = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests"))
            .expect("the manifests directory exists");
        let mut files: Vec<String> =
            directory.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        assert_eq!(files, EMBEDDED.map(|(file, _)| file));
        for (file, text) in EMBEDDED {
            let name = Manifest::parse(file, text).expect("valid manifest").name;
            assert_eq!(file, format!("{name}.toml"));
        }
    }
}
