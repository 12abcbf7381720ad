//! The manifest: one agent, described as data.

mod answers;
mod dialog;
mod layout;
mod location;
mod log_file;
mod pattern;
mod process;
mod resume;
mod screen;
mod setup;
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
pub use setup::{AgentSetup, SetupFile, SetupFormat};
pub use status_file::AgentStatusFile;
pub(crate) use title::TitleRule;
pub use typing::TypingRules;

/// The version of the manifest format that this build reads.
pub const CONTRACT: u32 = 1;

/// Read first: in another contract the same keys may have other meanings.
#[derive(Deserialize)]
struct ManifestHeader {
    contract: u32,
}

/// The manifest as written in TOML. Rules are compiled from it in a second step, so that an error can name its rule.
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
    /// Any value: only built-in manifests must contain a valid one.
    setup: Option<toml::Value>,
}

impl ManifestToml {
    /// Reads the manifest and returns a warning for each unknown key.
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
        let raw = serde_ignored::deserialize(document, |key| {
            // serde_ignored writes an optional part of the path as a question mark.
            let key = key.to_string().replace(".?", "");
            let what = format!("'{key}' is unknown to this build and has no effect");
            warnings.push(location::format_location(file, location::line_of_key(text, &key), &what));
        });
        Ok((raw.map_err(syntax)?, warnings))
    }
}

/// The part of a manifest that describes the agent's screen, title and dialogs.
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
    /// The version of the rules. Each judgement stores it, so that old judgements can be distinguished from new ones.
    pub(crate) version: u32,
    /// Whether the rules were verified on the agent itself. If false, they come from its documentation.
    pub(crate) measured: bool,
    pub(crate) process: ProcessRules,
    pub(crate) typing: TypingRules,
    /// How to read the agent's own events.
    pub(crate) native: NativeRules,
    pub(crate) event: Vec<EventRule>,
    pub(crate) status_file: Option<AgentStatusFile>,
    pub(crate) log: Option<AgentLogFile>,
    pub(crate) resume: Option<ResumeTemplate>,
    /// Used for built-in agents only.
    pub(crate) setup: Option<AgentSetup>,
    /// One warning per key that this build does not know.
    pub(crate) warnings: Vec<String>,
    rules: OnceLock<DisplayRules>,
    /// The text from which the rules are compiled on first use.
    embedded: Option<&'static str>,
}

/// The compiled rules for an agent's screen. They are compiled on first use, because patterns take memory and most
/// users run only a few of the known agents.
#[derive(Debug)]
pub(crate) struct DisplayRules {
    pub(crate) layout: Option<ScreenLayout>,
    /// Sorted by priority, highest first.
    pub(crate) screen: Vec<ScreenRule>,
    pub(crate) title: Vec<TitleRule>,
    pub(crate) dialog: Vec<DialogRule>,
    pub(crate) answers: answers::AnswerRules,
}

impl Manifest {
    /// Reads a built-in manifest. Its rules are compiled on first use.
    pub(crate) fn embedded(file: &str, text: &'static str) -> Result<Self, ManifestError> {
        let invalid = |problem| ManifestError::invalid(file, text, problem);
        let (mut raw, warnings) = ManifestToml::read(file, text)?;
        let setup = raw.setup.take().map(AgentSetup::deserialize).transpose();
        let setup = setup.map_err(|error| invalid(format!("'setup': {error}")))?;
        let (manifest, _) = Self::without_rules(raw, warnings).map_err(invalid)?;
        Ok(Self { setup, embedded: Some(text), ..manifest })
    }

    pub(crate) fn rules(&self) -> &DisplayRules {
        self.rules.get_or_init(|| {
            let compiled = self.embedded.map(|text| Self::parse(self.name.as_str(), text));
            let rules = compiled.and_then(Result::ok).and_then(|manifest| manifest.rules.into_inner());
            rules.unwrap_or_else(|| unreachable!("the embedded manifests are valid"))
        })
    }

    /// Reads a manifest of the user.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let (raw, mut warnings) = ManifestToml::read(file, text)?;
        if raw.setup.is_some() {
            let what = "'setup' is read from built-in manifests only and has no effect here";
            warnings.push(location::format_location(file, location::line_of_key(text, "setup"), what));
        }
        Self::compile(raw, warnings).map_err(|problem| ManifestError::invalid(file, text, problem))
    }

    fn compile(raw: ManifestToml, warnings: Vec<String>) -> Result<Self, String> {
        let (manifest, display) = Self::without_rules(raw, warnings)?;
        let rules = DisplayRules {
            layout: display.layout.map(ScreenLayout::compile).transpose()?,
            screen: screen::compile(display.screen)?,
            title: title::compile(display.title)?,
            dialog: dialog::compile(display.dialog)?,
            answers: answers::compile(display.answers)?,
        };
        match rules.contradiction() {
            Some(problem) => Err(problem),
            None => Ok(Self { rules: OnceLock::from(rules), ..manifest }),
        }
    }

    fn without_rules(raw: ManifestToml, warnings: Vec<String>) -> Result<(Self, DisplayRulesToml), String> {
        let name_is_plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !name_is_plain(raw.name.as_str()) {
            return Err("'name' must consist of lower-case letters, digits and '-'".into());
        }
        if let Some(problem) = raw.process.problem() {
            return Err(problem.into());
        }
        let files = raw.status_file.iter().filter_map(AgentStatusFile::problem);
        let files = files.chain(raw.log.iter().filter_map(AgentLogFile::problem));
        let others = files.chain(raw.resume.iter().filter_map(ResumeTemplate::problem));
        if let Some(problem) = raw.event.iter().filter_map(EventRule::problem).chain(others).next() {
            return Err(problem);
        }
        let manifest = Self {
            name: raw.name,
            version: raw.version,
            measured: raw.measured,
            process: raw.process,
            typing: raw.typing,
            native: raw.native,
            event: raw.event,
            status_file: raw.status_file,
            log: raw.log,
            resume: raw.resume,
            setup: None,
            warnings,
            rules: OnceLock::new(),
            embedded: None,
        };
        let ManifestToml { layout, screen, title, dialog, answers, .. } = raw;
        Ok((manifest, DisplayRulesToml { layout, screen, title, dialog, answers }))
    }
}

impl DisplayRules {
    /// Errors that concern several parts of the manifest.
    fn contradiction(&self) -> Option<String> {
        let names = || {
            let screens = self.screen.iter().map(|rule| &rule.name);
            screens.chain(self.title.iter().map(|rule| &rule.name)).chain(self.dialog.iter().map(|rule| &rule.name))
        };
        if let Some((_, twice)) = names().enumerate().find(|(at, name)| names().take(*at).any(|n| n == *name)) {
            return Some(format!("two rules are named '{twice}'"));
        }
        if self.layout.is_none() && !self.screen.is_empty() {
            return Some(format!("rule '{}' judges a screen, but the manifest has no [layout]", self.screen[0].name));
        }
        let knows = |name: &str| self.dialog.iter().any(|rule| rule.name == name);
        let stray = self.answers.dialog_names().find(|name| !knows(name));
        stray.map(|name| format!("'answers.dialogs.{name}' refers to a dialog that has no rule"))
    }
}

#[cfg(test)]
mod tests;
