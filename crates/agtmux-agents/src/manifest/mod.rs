//! The manifest: one agent, described as data.

mod answers;
mod conversation;
mod dialog;
mod extensions;
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

use crate::native::{EventRule, NativeRules};
use answers::{AnswerRules, AnswersToml};

pub use answers::{AnswerKeys, AnswerMethod, OptionKeys, OptionPattern, SimpleAnswer, TextAnswerMethod};
pub use conversation::ConversationStore;
pub(crate) use conversation::{RecordRole, RecordRule};
pub(crate) use dialog::{DialogRule, OptionFormat};
pub(crate) use layout::ScreenLayout;
pub use location::ManifestError;
pub(crate) use log_file::time_at;
pub use log_file::{AgentLogFile, name_matches};
pub use pattern::Pattern;
pub(crate) use process::{MatchStrength, ProcessRules};
pub use resume::ResumeTemplate;
pub(crate) use screen::{BoxRequirement, ScreenRegion, ScreenRule, StyleCondition, StyleRule};
pub use setup::{AgentSetup, SetupFile, SetupFormat};
pub use status_file::AgentStatusFile;
pub(crate) use title::TitleRule;
pub use typing::TypingRules;

/// The version of the manifest format that this build reads.
pub const CONTRACT: u32 = 1;

/// The part of a manifest that is read first. The other keys are read only if this build supports the manifest's format
/// version, because in another version they may have other meanings.
#[derive(Deserialize)]
struct ManifestHeader {
    contract: u32,
}

fn default_true() -> bool {
    true
}

fn default_version() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    #[serde(rename = "contract")]
    _contract: u32,
    pub(crate) name: AgentType,
    /// The version of the rules. Each judgement stores this version, which tells judgements by old rules from
    /// judgements by new ones.
    #[serde(default = "default_version")]
    pub(crate) version: u32,
    /// Whether the rules were tested with the real agent. If false, they come from the agent's documentation only.
    #[serde(default = "default_true")]
    pub(crate) measured: bool,
    pub(crate) process: ProcessRules,
    pub(crate) layout: Option<ScreenLayout>,
    /// The screen rules, sorted by priority, highest first.
    #[serde(default)]
    pub(crate) screen: Vec<ScreenRule>,
    #[serde(default)]
    pub(crate) title: Vec<TitleRule>,
    #[serde(default)]
    pub(crate) dialog: Vec<DialogRule>,
    #[serde(default, rename = "answers")]
    written_answers: AnswersToml,
    #[serde(skip)]
    pub(crate) answers: AnswerRules,
    #[serde(default)]
    pub(crate) typing: TypingRules,
    /// How to read the agent's own events.
    #[serde(default)]
    pub(crate) native: NativeRules,
    #[serde(default)]
    pub(crate) event: Vec<EventRule>,
    pub(crate) status_file: Option<AgentStatusFile>,
    pub(crate) log: Option<AgentLogFile>,
    pub(crate) conversation: Option<ConversationStore>,
    pub(crate) resume: Option<ResumeTemplate>,
    /// The table `setup`, not parsed yet. agtmux ignores this table in a user's manifest, so any value is valid there.
    #[serde(rename = "setup")]
    written_setup: Option<toml::Value>,
    /// The parsed table `setup`. Always None in a user's manifest.
    #[serde(skip)]
    pub(crate) setup: Option<AgentSetup>,
    /// One warning per key that this build does not know.
    #[serde(skip)]
    pub(crate) warnings: Vec<String>,
}

impl Manifest {
    /// Reads a built-in manifest. Does not check its rules: a test checks them.
    pub(crate) fn embedded(file: &str, text: &str) -> Result<Self, ManifestError> {
        let invalid = |problem| ManifestError::invalid(file, text, problem);
        let mut manifest = Self::read(file, text)?;
        let setup = manifest.written_setup.take().map(AgentSetup::deserialize).transpose();
        let setup = setup.map_err(|error| invalid(format!("'setup': {error}")))?;
        manifest.setup = setup.map(AgentSetup::with_package_files);
        manifest.complete().map_err(invalid)?;
        Ok(manifest)
    }

    /// Reads and checks a user's manifest.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let mut manifest = Self::read(file, text)?;
        if manifest.written_setup.is_some() {
            let what = "'setup' is read from built-in manifests only and has no effect here";
            let line = location::line_of_key(text, "setup");
            manifest.warnings.push(location::format_location(file, line, what));
        }
        let valid = manifest.check_parts().and_then(|()| manifest.complete()).and_then(|()| manifest.check_whole());
        valid.map_err(|problem| ManifestError::invalid(file, text, problem))?;
        Ok(manifest)
    }

    /// Parses the text and adds a warning for each unknown key. Does not check the rules, because a later step can name
    /// the invalid rule in its error.
    fn read(file: &str, text: &str) -> Result<Self, ManifestError> {
        let syntax = |error| ManifestError::syntax(file, text, &error);
        let header: ManifestHeader = toml::from_str(text).map_err(syntax)?;
        if header.contract != CONTRACT {
            let problem = format!(
                "written for contract {}, but this agtmux reads contract {CONTRACT}; update agtmux or the manifest",
                header.contract
            );
            return Err(ManifestError {
                line: location::line_of_key(text, "contract"),
                ..ManifestError::for_file(file, problem)
            });
        }
        let mut warnings = Vec::new();
        let document = toml::Deserializer::parse(text).map_err(syntax)?;
        let manifest = serde_ignored::deserialize(document, |key| {
            // serde_ignored writes an optional part of the path as a question mark.
            let key = key.to_string().replace(".?", "");
            let what = format!("'{key}' is unknown to this version of agtmux and has no effect");
            warnings.push(location::format_location(file, location::line_of_key(text, &key), &what));
        });
        Ok(Self { warnings, ..manifest.map_err(syntax)? })
    }

    /// Sorts the screen rules, and adds the default answers to the answers of each dialog.
    fn complete(&mut self) -> Result<(), String> {
        self.screen.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        self.answers = AnswerRules::new(std::mem::take(&mut self.written_answers))?;
        Ok(())
    }

    fn check_parts(&self) -> Result<(), String> {
        if !pattern::is_plain_name(self.name.as_str()) {
            return Err("'name' must consist of lower-case letters, digits and '-'".into());
        }
        if let Some(problem) = self.process.problem() {
            return Err(problem.into());
        }
        let files = self.status_file.iter().filter_map(AgentStatusFile::problem);
        let files = files.chain(self.log.iter().filter_map(AgentLogFile::problem));
        let files = files.chain(self.conversation.iter().filter_map(ConversationStore::problem));
        let others = files.chain(self.resume.iter().filter_map(ResumeTemplate::problem));
        if let Some(problem) = self.event.iter().filter_map(EventRule::problem).chain(others).next() {
            return Err(problem);
        }
        self.layout.iter().try_for_each(ScreenLayout::check)?;
        self.screen.iter().try_for_each(ScreenRule::check)?;
        self.title.iter().try_for_each(TitleRule::check)?;
        self.dialog.iter().try_for_each(DialogRule::check)
    }

    /// Finds errors in the answers, and errors that become visible only when several parts of the manifest are
    /// compared.
    fn check_whole(&self) -> Result<(), String> {
        self.answers.check()?;
        let names = || {
            let screens = self.screen.iter().map(|rule| &rule.name);
            screens.chain(self.title.iter().map(|rule| &rule.name)).chain(self.dialog.iter().map(|rule| &rule.name))
        };
        if let Some((_, twice)) = names().enumerate().find(|(at, name)| names().take(*at).any(|n| n == *name)) {
            return Err(format!("two rules are named '{twice}'"));
        }
        if self.layout.is_none() && !self.screen.is_empty() {
            return Err(format!("rule '{}' judges a screen, but the manifest has no [layout]", self.screen[0].name));
        }
        let knows = |name: &str| self.dialog.iter().any(|rule| rule.name == name);
        match self.answers.dialog_names().find(|name| !knows(name)) {
            Some(name) => Err(format!("'answers.dialogs.{name}' refers to a dialog that has no rule")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
