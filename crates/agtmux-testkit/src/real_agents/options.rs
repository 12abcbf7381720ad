//! The options of a conformance run. `scripts/conformance` passes them in environment variables.

use std::env;
use std::path::PathBuf;

use super::states::EvidenceMode;

/// The number of columns, and then the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneSize(pub u16, pub u16);

/// The name of an agent to test, and optionally a version. The user writes both as `claude@2.1.110`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSelection {
    pub name: String,
    pub version: Option<String>,
}

impl AgentSelection {
    fn parse(word: &str) -> Self {
        match word.split_once('@') {
            Some((name, version)) => Self { name: name.to_owned(), version: Some(version.to_owned()) },
            None => Self { name: word.to_owned(), version: None },
        }
    }
}

/// Which version of an agent to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentVersionChoice<'a> {
    Pinned,
    Newest,
    Exact(&'a str),
}

#[derive(Debug, Clone)]
pub struct ConformanceOptions {
    /// The agents to test. Empty means all agents.
    pub agents: Vec<AgentSelection>,
    pub scenarios: Vec<String>,
    pub modes: Vec<EvidenceMode>,
    pub size: PaneSize,
    pub record: Option<PathBuf>,
    /// How many scenarios run in parallel.
    pub jobs: usize,
    /// Whether to test the newest versions of the agents instead of the pinned ones.
    pub newest: bool,
    /// The file that the report is written to.
    pub document: Option<PathBuf>,
}

impl ConformanceOptions {
    pub fn from_environment() -> Self {
        let words = |name: &str| -> Vec<String> {
            let value = environment_variable(name).unwrap_or_default();
            value.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let modes = words("MODES");
        let is_selected = |mode: &EvidenceMode| modes.is_empty() || modes.iter().any(|word| word == mode.as_str());
        Self {
            agents: words("AGENTS").iter().map(|word| AgentSelection::parse(word)).collect(),
            scenarios: words("SCENARIOS"),
            modes: EvidenceMode::ALL.into_iter().filter(is_selected).collect(),
            size: environment_variable("SIZE").as_deref().and_then(parse_size).unwrap_or(PaneSize(120, 40)),
            record: environment_variable("RECORD").map(PathBuf::from),
            jobs: environment_variable("JOBS").and_then(|jobs| jobs.parse().ok()).unwrap_or(1),
            newest: environment_variable("LATEST").is_some(),
            document: environment_variable("DOCUMENT").map(PathBuf::from),
        }
    }
}

impl ConformanceOptions {
    /// Which version of this agent to test. `None` if the agent is not selected.
    pub fn version_for(&self, agent: &str) -> Option<AgentVersionChoice<'_>> {
        let usual = if self.newest { AgentVersionChoice::Newest } else { AgentVersionChoice::Pinned };
        if self.agents.is_empty() {
            return Some(usual);
        }
        let selection = self.agents.iter().find(|selection| selection.name == agent)?;
        Some(selection.version.as_deref().map_or(usual, AgentVersionChoice::Exact))
    }
}

fn environment_variable(name: &str) -> Option<String> {
    env::var(format!("AGTMUX_CONFORMANCE_{name}")).ok().filter(|value| !value.is_empty())
}

fn parse_size(text: &str) -> Option<PaneSize> {
    let (columns, rows) = text.split_once('x')?;
    Some(PaneSize(columns.parse().ok()?, rows.parse().ok()?))
}
