//! The registry of all known agents, and the search for the agent in a pane.

use std::sync::{Arc, LazyLock};

use agtmux_core::evidence::{Assertion, Claim, Observation, Source};
use agtmux_core::ids::AgentType;
use agtmux_core::state::State;
use jiff::Timestamp;

use crate::adapter::{Adapter, ManifestOrigin};
use crate::command_line::Invocation;
use crate::foreground::{JobPosition, job_positions};
use crate::judge::{self, ScreenReading};
use crate::manifest::{
    AgentLogFile, AgentStatusFile, AnswerKeys, Manifest, ManifestError, MatchStrength, ResumeTemplate, TypingRules,
};
use crate::native::{self, AdapterMemory, Evidence, NativeEvent};
use crate::process::{IdentifiedAgent, ProcessFacts};
use crate::screen::{CapturedScreen, ScreenRegions};
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
    agents: Vec<RegisteredAgent>,
    faults: Vec<ManifestFault>,
}

#[derive(Debug, Clone)]
pub(crate) struct RegisteredAgent {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) origin: ManifestOrigin,
}

struct ProcessMatch<'a> {
    manifest: &'a Manifest,
    strength: MatchStrength,
    position: JobPosition,
    pid: u32,
    stopped: bool,
    headless: bool,
}

impl AgentRegistry {
    /// The built-in agents. The manifests are read once.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    fn embedded() -> Result<Self, ManifestError> {
        let manifests = EMBEDDED.iter().map(|(file, text)| Manifest::embedded(file, text));
        let agent =
            |manifest: Manifest| RegisteredAgent { manifest: Arc::new(manifest), origin: ManifestOrigin::BuiltIn };
        Ok(Self::new(manifests.map(|manifest| manifest.map(agent)).collect::<Result<_, _>>()?, Vec::new()))
    }

    pub(crate) fn new(agents: Vec<RegisteredAgent>, faults: Vec<ManifestFault>) -> Self {
        Self { agents, faults }
    }

    /// The text of a built-in manifest.
    pub fn builtin_manifest_text(name: &str) -> Option<&'static str> {
        EMBEDDED.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name)).map(|(_, text)| *text)
    }

    pub(crate) fn agents(&self) -> &[RegisteredAgent] {
        &self.agents
    }

    pub fn knows(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some()
    }

    /// The user's manifest files that cannot be used.
    pub fn faults(&self) -> &[ManifestFault] {
        &self.faults
    }

    /// The names of the agents that differ between the two registries, or exist in only one of them.
    pub fn changed_agents(&self, other: &Self) -> Vec<String> {
        let missing = |agent: &&RegisteredAgent, from: &Self| {
            !from.agents.iter().any(|a| Arc::ptr_eq(&a.manifest, &agent.manifest))
        };
        let here = self.agents.iter().filter(|agent| missing(agent, other));
        let there = other.agents.iter().filter(|agent| missing(agent, self));
        let mut names: Vec<String> = here.chain(there).map(|agent| agent.manifest.name.to_string()).collect();
        names.sort();
        names.dedup();
        names
    }

    pub fn agent_types(&self) -> impl Iterator<Item = &AgentType> {
        self.agents.iter().map(|agent| &agent.manifest.name)
    }

    /// The warnings about manifest keys that this build does not know.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().flat_map(|agent| &agent.manifest.warnings).map(String::as_str)
    }

    /// Judges the screen of an agent of this type. `title` is the pane title at the time of the capture.
    pub fn read_screen(&self, agent_type: &str, screen: &CapturedScreen, title: Option<&str>) -> ScreenReading {
        self.manifest(agent_type)
            .map(|manifest| ScreenReading::from_screen(manifest, screen, title))
            .unwrap_or_default()
    }

    /// Judges the title of an agent of this type. The result is about a dialog only if the title announces one.
    pub fn read_title(&self, agent_type: &str, title: &str) -> Option<Observation> {
        judge::read_title(self.manifest(agent_type)?, title)
    }

    /// Like [`read_title`](Self::read_title), but adds "no dialog" for agents whose titles announce dialogs.
    pub fn title_observations(&self, agent_type: &str, title: &str) -> Vec<Observation> {
        let Some((manifest, observation)) = self.manifest(agent_type).zip(self.read_title(agent_type, title)) else {
            return Vec::new();
        };
        let announces_dialogs = manifest
            .rules()
            .title
            .iter()
            .any(|rule| matches!(rule.state, State::WaitingApproval | State::WaitingInput));
        let no_dialog = (announces_dialogs && observation.assertion.claim() == Claim::Turn)
            .then(|| Observation { assertion: Assertion::NoDialog, ..observation.clone() });
        [observation].into_iter().chain(no_dialog).collect()
    }

    /// The text in the agent's input box, without ghost text. None if no box is visible.
    pub fn typed_text(&self, agent_type: &str, screen: &CapturedScreen) -> Option<String> {
        ScreenRegions::find(screen, self.manifest(agent_type)?.rules().layout.as_ref()).typed_text()
    }

    /// The non-blank rows above the input box.
    pub fn transcript(&self, agent_type: &str, screen: &CapturedScreen) -> Vec<String> {
        let layout = self.manifest(agent_type).and_then(|manifest| manifest.rules().layout.as_ref());
        ScreenRegions::find(screen, layout).text_above_box()
    }

    /// Whether the input box shows suggested text behind typed text.
    pub fn shows_suggestion(&self, agent_type: &str, screen: &CapturedScreen) -> bool {
        self.manifest(agent_type)
            .is_some_and(|manifest| ScreenRegions::find(screen, manifest.rules().layout.as_ref()).shows_suggestion())
    }

    /// Whether the manifest describes the agent's input box.
    pub fn has_input_box_rules(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some_and(|manifest| manifest.rules().layout.is_some())
    }

    /// How the input box handles keys.
    pub fn typing_rules(&self, agent_type: &str) -> Option<&TypingRules> {
        self.manifest(agent_type).map(|manifest| &manifest.typing)
    }

    /// Whether the agent's own events report submitted prompts.
    pub fn reports_submissions(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some_and(|manifest| manifest.event.iter().any(|rule| rule.submits.is_some()))
    }

    /// The keys that answer a dialog found by this rule.
    pub fn answer_keys(&self, agent_type: &str, rule: &str) -> Option<&AnswerKeys> {
        self.manifest(agent_type).map(|manifest| manifest.rules().answers.for_dialog(rule))
    }

    /// The command that resumes an ended session of this agent type.
    pub fn resume(&self, agent_type: &str) -> Option<&ResumeTemplate> {
        self.manifest(agent_type)?.resume.as_ref()
    }

    /// Turns evidence of an agent into observations. `memory` holds the result of the earlier evidence. Also returns
    /// the next time at which the passing of time alone leads to observations.
    pub fn reduce(
        &self,
        agent_type: &str,
        memory: &mut AdapterMemory,
        evidence: Evidence<'_>,
        now: Timestamp,
    ) -> (Vec<Observation>, Option<Timestamp>) {
        native::reduce(self.manifest(agent_type), memory, evidence, now)
    }

    /// The summary of every agent, sorted by name.
    pub fn adapters(&self) -> impl Iterator<Item = Adapter> {
        let mut agents: Vec<&RegisteredAgent> = self.agents.iter().collect();
        agents.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
        agents.into_iter().map(|agent| Adapter::from_manifest(&agent.manifest, &agent.origin))
    }

    /// Whether the rules were verified on the agent itself.
    pub fn is_measured(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some_and(|manifest| manifest.measured)
    }

    /// Whether one process may send the events of several agents of this type.
    pub fn shares_process(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some_and(|manifest| manifest.native.shared_process)
    }

    pub fn status_file(&self, agent_type: &str) -> Option<&AgentStatusFile> {
        self.manifest(agent_type)?.status_file.as_ref()
    }

    pub fn log_file(&self, agent_type: &str) -> Option<&AgentLogFile> {
        self.manifest(agent_type)?.log.as_ref()
    }

    /// Whether the agent reports its state by OSC sequences on its terminal.
    pub fn emits_osc(&self, agent_type: &str) -> bool {
        self.manifest(agent_type).is_some_and(|manifest| manifest.event.iter().any(|rule| rule.source() == Source::Osc))
    }

    /// Whether a rule exists for events of this type from the agent's status file or log.
    pub fn reads_file_event(&self, agent_type: &str, event_type: &str) -> bool {
        let rules = self.manifest(agent_type).into_iter().flat_map(|manifest| &manifest.event);
        rules.into_iter().any(|rule| rule.source() == Source::File && rule.event_type() == event_type)
    }

    /// The prompt that this event reports as submitted. Empty if the event does not contain the text.
    pub fn submitted_prompt(&self, agent_type: &str, event: NativeEvent<'_>) -> Option<String> {
        let rules = self.manifest(agent_type)?.event.iter();
        let mut fitting = rules.filter(|rule| rule.matches(event.source, event.event_type, event.payload, None));
        let path = fitting.next()?.submits.as_deref()?;
        Some(native::text_or_empty(event.payload, path))
    }

    fn manifest(&self, agent_type: &str) -> Option<&Manifest> {
        self.agents.iter().map(|agent| &*agent.manifest).find(|manifest| manifest.name.as_str() == agent_type)
    }

    /// Finds the agent that a pane shows: the outermost agent of the foreground job, or the outermost stopped agent.
    ///
    /// `processes` are all processes of the pane, parents before children. The foreground job is the terminal's
    /// foreground process group and all descendants: sudo runs its command in another group, on another terminal.
    /// Without a known foreground group, every process counts.
    pub fn identify(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Option<IdentifiedAgent> {
        let matches = self.matches(processes, foreground_pgrp);
        let outermost = |eligible: fn(&ProcessMatch<'_>) -> bool| {
            matches
                .iter()
                .filter(|m| eligible(m))
                .min_by_key(|m| (m.strength != MatchStrength::Direct, m.position.depth, m.pid))
        };
        let found = outermost(|m| m.position.in_foreground).or_else(|| outermost(|m| m.stopped))?;
        Some(IdentifiedAgent {
            agent_type: found.manifest.name.clone(),
            pid: found.pid,
            suspended: found.stopped,
            headless: found.headless,
        })
    }

    fn matches(&self, processes: &[ProcessFacts<'_>], foreground_pgrp: Option<u32>) -> Vec<ProcessMatch<'_>> {
        let positions = job_positions(processes, foreground_pgrp);
        let alive = processes.iter().zip(positions).filter(|(process, _)| !process.zombie);
        alive.filter_map(|(process, position)| self.match_one(process, position)).collect()
    }

    fn match_one(&self, process: &ProcessFacts<'_>, position: JobPosition) -> Option<ProcessMatch<'_>> {
        let invocation = Invocation::from_process(process);
        let (manifest, strength) = self.judge_process(process, &invocation)?;
        let headless = manifest.process.is_headless(&invocation);
        Some(ProcessMatch { manifest, strength, position, pid: process.pid, stopped: process.stopped, headless })
    }

    /// The manifest that matches this process, and how certain the match is.
    pub(crate) fn judge_process(
        &self,
        process: &ProcessFacts<'_>,
        invocation: &Invocation<'_>,
    ) -> Option<(&Manifest, MatchStrength)> {
        let manifests = self.agents.iter().map(|agent| &*agent.manifest);
        let judged = manifests.filter_map(|m| Some((m, m.process.match_process(process, invocation)?)));
        judged.max_by_key(|(_, strength)| *strength)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_manifests_are_valid_and_have_no_warnings() {
        let names: Vec<&str> = AgentRegistry::builtin().agent_types().map(AgentType::as_str).collect();
        assert_eq!(names, ["aider", "claude", "codex", "copilot", "cursor", "gemini", "opencode", "pi", "qwen"]);
        assert_eq!(AgentRegistry::builtin().warnings().collect::<Vec<_>>(), Vec::<&str>::new());
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
