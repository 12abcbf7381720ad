//! What is to be played; `scripts/conformance --help` names the same things for people.

use std::env;
use std::path::PathBuf;

use super::words::Mode;

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u16, pub(crate) u16);

/// An agent by name, in the pinned version or, as `claude@2.1.110`, in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

impl Wanted {
    fn parse(word: &str) -> Self {
        match word.split_once('@') {
            Some((name, version)) => Self { name: name.to_owned(), version: Some(version.to_owned()) },
            None => Self { name: word.to_owned(), version: None },
        }
    }
}

/// Which version of each agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version<'a> {
    Pinned,
    Newest,
    This(&'a str),
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Empty for all.
    pub(crate) agents: Vec<Wanted>,
    pub(crate) scenarios: Vec<String>,
    pub(crate) modes: Vec<Mode>,
    pub(crate) size: Size,
    pub(crate) record: Option<PathBuf>,
    /// How many are played side by side.
    pub(crate) jobs: usize,
    /// The newest versions instead of the pinned ones.
    pub(crate) latest: bool,
    /// Where the table is written.
    pub(crate) document: Option<PathBuf>,
}

impl Options {
    pub(crate) fn from_environment() -> Self {
        let words = |name: &str| -> Vec<String> {
            let value = variable(name).unwrap_or_default();
            value.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let modes = words("MODES");
        let is_wanted = |mode: &Mode| modes.is_empty() || modes.iter().any(|word| word == mode.word());
        Self {
            agents: words("AGENTS").iter().map(|word| Wanted::parse(word)).collect(),
            scenarios: words("SCENARIOS"),
            modes: Mode::ALL.into_iter().filter(is_wanted).collect(),
            size: variable("SIZE").as_deref().and_then(parse_size).unwrap_or(Size(120, 40)),
            record: variable("RECORD").map(PathBuf::from),
            jobs: variable("JOBS").and_then(|jobs| jobs.parse().ok()).unwrap_or(1),
            latest: variable("LATEST").is_some(),
            document: variable("DOCUMENT").map(PathBuf::from),
        }
    }
}

impl Options {
    /// The version to try, where the agent is among those that are wanted.
    pub(crate) fn wants(&self, agent: &str) -> Option<Version<'_>> {
        let usual = if self.latest { Version::Newest } else { Version::Pinned };
        if self.agents.is_empty() {
            return Some(usual);
        }
        let wanted = self.agents.iter().find(|wanted| wanted.name == agent)?;
        Some(wanted.version.as_deref().map_or(usual, Version::This))
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(format!("AGTMUX_CONFORMANCE_{name}")).ok().filter(|value| !value.is_empty())
}

fn parse_size(text: &str) -> Option<Size> {
    let (columns, rows) = text.split_once('x')?;
    Some(Size(columns.parse().ok()?, rows.parse().ok()?))
}
