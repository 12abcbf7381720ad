//! One agent, described as data.

mod answers;
mod dialog;
mod layout;
mod location;
mod log_file;
mod pattern;
mod process;
mod resume;
mod screen;
mod status_file;
mod title;
mod typing;

use agtmux_core::ids::AgentType;
use serde::Deserialize;
use std::sync::OnceLock;

use crate::native::{EventRule, NativeRules};

pub use answers::{AnswerKeys, AnswerMethod, OptionKeys, OptionPattern, SimpleAnswer, TextAnswerMethod};
pub(crate) use dialog::{DialogRule, OptionFormat};
pub(crate) use layout::ScreenLayout;
pub use location::ManifestError;
pub use log_file::{AgentLogFile, name_matches};
pub(crate) use process::{MatchStrength, ProcessRules};
pub use resume::ResumeTemplate;
pub(crate) use screen::{BoxRequirement, ScreenRegion, ScreenRule, StyleCondition, StyleRule};
pub use status_file::AgentStatusFile;
pub(crate) use title::TitleRule;
pub use typing::TypingRules;

/// The version of the manifests' language that this build reads.
pub const CONTRACT: u32 = 1;

/// Read first: another contract may give the same keys other meanings.
#[derive(Deserialize)]
struct ManifestHeader {
    contract: u32,
}

/// As it is written. Rules are compiled from it, so that a mistake can be told with the name of its rule.
#[derive(Deserialize)]
struct ManifestToml {
    #[serde(rename = "contract")]
    _contract: u32,
    name: AgentType,
    #[serde(default = "default_version")]
    version: u32,
    #[serde(default = "default_true")]
    measured: bool,
    process: ProcessRules,
    layout: Option<layout::LayoutToml>,
    #[serde(default)]
    screen: Vec<screen::ScreenRuleToml>,
    #[serde(default)]
    title: Vec<title::TitleRuleToml>,
    #[serde(default)]
    dialog: Vec<dialog::DialogRuleToml>,
    #[serde(default)]
    answers: answers::AnswersToml,
    #[serde(default)]
    typing: TypingRules,
    #[serde(default)]
    native: NativeRules,
    #[serde(default)]
    event: Vec<EventRule>,
    #[serde(default)]
    status_file: Option<AgentStatusFile>,
    #[serde(default)]
    log: Option<AgentLogFile>,
    #[serde(default)]
    resume: Option<ResumeTemplate>,
}

impl ManifestToml {
    /// With the keys that this build does not know.
    fn read(file: &str, text: &str) -> Result<(Self, Vec<String>), ManifestError> {
        let syntax = |error| ManifestError::syntax(file, text, &error);
        let header: ManifestHeader = toml::from_str(text).map_err(syntax)?;
        if header.contract != CONTRACT {
            let problem = format!(
                "written for contract {}, this build reads contract {CONTRACT}; update agtmux or the manifest",
                header.contract
            );
            return Err(ManifestError {
                line: location::line_of_key(text, "contract"),
                ..ManifestError::for_file(file, problem)
            });
        }
        let mut warnings = Vec::new();
        let document = toml::Deserializer::parse(text).map_err(syntax)?;
        let written = serde_ignored::deserialize(document, |key| {
            // A part that may be missing stands in the path as a question mark.
            let key = key.to_string().replace(".?", "");
            let what = format!("'{key}' is not known to this build and has no effect");
            warnings.push(location::format_location(file, location::line_of_key(text, &key), &what));
        });
        Ok((written.map_err(syntax)?, warnings))
    }
}

/// The part of it that tells how the agent looks.
struct DisplayRulesToml {
    layout: Option<layout::LayoutToml>,
    screen: Vec<screen::ScreenRuleToml>,
    title: Vec<title::TitleRuleToml>,
    dialog: Vec<dialog::DialogRuleToml>,
    answers: answers::AnswersToml,
}

fn default_true() -> bool {
    true
}

fn default_version() -> u32 {
    1
}

#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: AgentType,
    /// Of the rules: it is kept with each judgement, so that an old one can be told from a new one.
    pub(crate) version: u32,
    /// Whether the rules were seen to be right on the agent itself, or come from its documentation.
    pub(crate) measured: bool,
    pub(crate) process: ProcessRules,
    pub(crate) typing: TypingRules,
    /// How to read the agent's own events, and what each says.
    pub(crate) native: NativeRules,
    pub(crate) event: Vec<EventRule>,
    pub(crate) status_file: Option<AgentStatusFile>,
    pub(crate) log: Option<AgentLogFile>,
    pub(crate) resume: Option<ResumeTemplate>,
    /// Keys that this build does not know.
    pub(crate) warnings: Vec<String>,
    rules: OnceLock<DisplayRules>,
    /// What the rules are compiled from when they are first needed.
    embedded: Option<&'static str>,
}

/// How an agent looks. Patterns take memory, and most people use few of the agents that are known.
#[derive(Debug)]
pub(crate) struct DisplayRules {
    pub(crate) layout: Option<ScreenLayout>,
    /// The strongest first.
    pub(crate) screen: Vec<ScreenRule>,
    pub(crate) title: Vec<TitleRule>,
    pub(crate) dialog: Vec<DialogRule>,
    pub(crate) answers: answers::AnswerRules,
}

impl Manifest {
    /// One of our own: its rules are compiled when they are needed.
    pub(crate) fn embedded(file: &str, text: &'static str) -> Result<Self, ManifestError> {
        let (written, warnings) = ManifestToml::read(file, text)?;
        let (manifest, _) =
            Self::without_rules(written, warnings).map_err(|problem| ManifestError::invalid(file, text, problem))?;
        Ok(Self { embedded: Some(text), ..manifest })
    }

    pub(crate) fn rules(&self) -> &DisplayRules {
        self.rules.get_or_init(|| {
            let compiled = self.embedded.map(|text| Self::parse(self.name.as_str(), text));
            let rules = compiled.and_then(Result::ok).and_then(|manifest| manifest.rules.into_inner());
            rules.unwrap_or_else(|| unreachable!("a test compiles the embedded manifests"))
        })
    }

    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let (written, warnings) = ManifestToml::read(file, text)?;
        Self::compile(written, warnings).map_err(|problem| ManifestError::invalid(file, text, problem))
    }

    fn compile(written: ManifestToml, warnings: Vec<String>) -> Result<Self, String> {
        let (manifest, looks) = Self::without_rules(written, warnings)?;
        let rules = DisplayRules {
            layout: looks.layout.map(ScreenLayout::compile).transpose()?,
            screen: screen::compile(looks.screen)?,
            title: title::compile(looks.title)?,
            dialog: dialog::compile(looks.dialog)?,
            answers: answers::compile(looks.answers)?,
        };
        match rules.contradiction() {
            Some(problem) => Err(problem),
            None => Ok(Self { rules: OnceLock::from(rules), ..manifest }),
        }
    }

    fn without_rules(written: ManifestToml, warnings: Vec<String>) -> Result<(Self, DisplayRulesToml), String> {
        let name_is_plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !name_is_plain(written.name.as_str()) {
            return Err("'name' must consist of lower case letters, digits and '-'".into());
        }
        if let Some(problem) = written.process.problem() {
            return Err(problem.into());
        }
        let files = written.status_file.iter().filter_map(AgentStatusFile::problem);
        let files = files.chain(written.log.iter().filter_map(AgentLogFile::problem));
        let others = files.chain(written.resume.iter().filter_map(ResumeTemplate::problem));
        if let Some(problem) = written.event.iter().filter_map(EventRule::problem).chain(others).next() {
            return Err(problem);
        }
        let manifest = Self {
            name: written.name,
            version: written.version,
            measured: written.measured,
            process: written.process,
            typing: written.typing,
            native: written.native,
            event: written.event,
            status_file: written.status_file,
            log: written.log,
            resume: written.resume,
            warnings,
            rules: OnceLock::new(),
            embedded: None,
        };
        let ManifestToml { layout, screen, title, dialog, answers, .. } = written;
        Ok((manifest, DisplayRulesToml { layout, screen, title, dialog, answers }))
    }
}

impl DisplayRules {
    /// What no part of it can see for itself.
    fn contradiction(&self) -> Option<String> {
        let names = || {
            let screens = self.screen.iter().map(|rule| &rule.name);
            screens.chain(self.title.iter().map(|rule| &rule.name)).chain(self.dialog.iter().map(|rule| &rule.name))
        };
        if let Some((_, twice)) = names().enumerate().find(|(at, name)| names().take(*at).any(|n| n == *name)) {
            return Some(format!("there are two rules named '{twice}'"));
        }
        if self.layout.is_none() && !self.screen.is_empty() {
            return Some(format!("rule '{}' judges a screen, but there is no [layout]", self.screen[0].name));
        }
        let knows = |name: &str| self.dialog.iter().any(|rule| rule.name == name);
        let stray = self.answers.dialog_names().find(|name| !knows(name));
        stray.map(|name| format!("'answers.dialogs.{name}' is for a dialog that has no rule"))
    }
}

#[cfg(test)]
mod tests;
