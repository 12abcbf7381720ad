//! All agents that are known, and the search for one in a pane.

use std::sync::LazyLock;

use agtmux_core::ids::AgentType;

use crate::command_line::Invocation;
use crate::foreground::{Standing, standings};
use crate::manifest::{Manifest, ManifestError, Strength};
use crate::process::{Found, ProcessFacts};

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        [$((concat!($name, ".toml"), include_str!(concat!("../manifests/", $name, ".toml")))),+]
    };
}

const EMBEDDED: [(&str, &str); 9] =
    embedded!["aider", "claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"];

static BUILTIN: LazyLock<Registry> =
    LazyLock::new(|| Registry::from_manifests(EMBEDDED).expect("a test reads the embedded manifests"));

#[derive(Debug)]
pub struct Registry {
    manifests: Vec<Manifest>,
}

struct Match<'a> {
    manifest: &'a Manifest,
    strength: Strength,
    standing: Standing,
    pid: u32,
    stopped: bool,
}

impl Registry {
    /// The agents that this build knows, read once.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// From manifests with the names of their files.
    pub fn from_manifests<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ManifestError> {
        let mut manifests: Vec<Manifest> = Vec::new();
        for (file, text) in files {
            let manifest = Manifest::parse(file, text)?;
            if manifests.iter().any(|known| known.name == manifest.name) {
                return Err(ManifestError::Duplicate { file: file.into(), name: manifest.name });
            }
            manifests.push(manifest);
        }
        Ok(Self { manifests })
    }

    pub fn agent_types(&self) -> impl Iterator<Item = &AgentType> {
        self.manifests.iter().map(|manifest| &manifest.name)
    }

    /// The agent that a pane shows, if any: the outermost one of the foreground job, else the outermost stopped one.
    ///
    /// `processes` are all below the pane, parents before children. The foreground job is the terminal's foreground
    /// process group with everything below it: sudo runs its command in another group, on another terminal. Without
    /// a known foreground group every process counts.
    pub fn identify(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Option<Found> {
        let matches = self.matches(processes, foreground_pgrp);
        let outermost = |eligible: fn(&Match<'_>) -> bool| {
            matches
                .iter()
                .filter(|m| eligible(m))
                .min_by_key(|m| (m.strength != Strength::Direct, m.standing.depth, m.pid))
        };
        let found = outermost(|m| m.standing.in_foreground).or_else(|| outermost(|m| m.stopped))?;
        Some(Found { agent_type: found.manifest.name.clone(), pid: found.pid, suspended: found.stopped })
    }

    fn matches(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Vec<Match<'_>> {
        let standings = standings(processes, foreground_pgrp);
        let alive = processes.iter().zip(standings).filter(|(process, _)| !process.zombie);
        alive.filter_map(|(process, standing)| self.match_one(process, standing)).collect()
    }

    fn match_one(&self, process: &ProcessFacts<'_>, standing: Standing) -> Option<Match<'_>> {
        let invocation = Invocation::of(process);
        let judged = self.manifests.iter().filter_map(|m| Some((m, m.process.judge(process, &invocation)?)));
        let (manifest, strength) = judged.max_by_key(|(_, strength)| *strength)?;
        Some(Match { manifest, strength, standing, pid: process.pid, stopped: process.stopped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_manifests_are_good() {
        let names: Vec<&str> = Registry::builtin().agent_types().map(AgentType::as_str).collect();
        assert_eq!(names, ["aider", "claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"]);
    }

    #[test]
    fn every_manifest_file_is_embedded_under_its_name() {
        let directory = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/manifests")).expect("is there");
        let mut files: Vec<String> =
            directory.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        assert_eq!(files, EMBEDDED.map(|(file, _)| file));
        for (file, text) in EMBEDDED {
            let name = Manifest::parse(file, text).expect("good").name;
            assert_eq!(file, format!("{name}.toml"));
        }
    }

    #[test]
    fn two_agents_of_one_name_are_refused() {
        let (file, text) = EMBEDDED[0];
        let error = Registry::from_manifests([(file, text), ("copy.toml", text)]).expect_err("twice");
        assert_eq!(error.to_string(), "copy.toml: there is already an agent named 'aider'");
    }
}
