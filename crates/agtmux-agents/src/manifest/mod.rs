//! One agent, described as data.

mod answers;
mod dialog;
mod layout;
mod log_file;
mod pattern;
mod place;
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

pub use answers::{AnswerKeys, OptionKeys, OptionPattern, Plain, TextWay, Way};
pub(crate) use dialog::{Choices, DialogRule};
pub(crate) use layout::Layout;
pub use log_file::{LogFile, name_fits};
pub use place::ManifestError;
pub(crate) use process::{ProcessRules, Strength};
pub use resume::Resume;
pub(crate) use screen::{Look, Needs, Region, ScreenRule, StyleRule};
pub use status_file::StatusFile;
pub(crate) use title::TitleRule;
pub use typing::TypingRules;

/// The version of the manifests' language that this build reads.
pub const CONTRACT: u32 = 1;

/// Read first: another contract may give the same keys other meanings.
#[derive(Deserialize)]
struct Header {
    contract: u32,
}

/// As it is written. Rules are compiled from it, so that a mistake can be told with the name of its rule.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "contract")]
    _contract: u32,
    name: AgentType,
    #[serde(default = "first_version")]
    version: u32,
    #[serde(default = "yes")]
    measured: bool,
    process: ProcessRules,
    layout: Option<layout::Written>,
    #[serde(default)]
    screen: Vec<screen::Written>,
    #[serde(default)]
    title: Vec<title::Written>,
    #[serde(default)]
    dialog: Vec<dialog::Written>,
    #[serde(default)]
    answers: answers::Written,
    #[serde(default)]
    typing: TypingRules,
    #[serde(default)]
    native: NativeRules,
    #[serde(default)]
    event: Vec<EventRule>,
    #[serde(default)]
    status_file: Option<StatusFile>,
    #[serde(default)]
    log: Option<LogFile>,
    #[serde(default)]
    resume: Option<Resume>,
}

impl Written {
    /// With the keys that this build does not know.
    fn read(file: &str, text: &str) -> Result<(Self, Vec<String>), ManifestError> {
        let syntax = |error| ManifestError::syntax(file, text, &error);
        let header: Header = toml::from_str(text).map_err(syntax)?;
        if header.contract != CONTRACT {
            let problem = format!(
                "written for contract {}, this build reads contract {CONTRACT}; update agtmux or the manifest",
                header.contract
            );
            return Err(ManifestError {
                line: place::line_of_key(text, "contract"),
                ..ManifestError::whole(file, problem)
            });
        }
        let mut warnings = Vec::new();
        let document = toml::Deserializer::parse(text).map_err(syntax)?;
        let written = serde_ignored::deserialize(document, |key| {
            // A part that may be missing stands in the path as a question mark.
            let key = key.to_string().replace(".?", "");
            let what = format!("'{key}' is not known to this build and has no effect");
            warnings.push(place::at(file, place::line_of_key(text, &key), &what));
        });
        Ok((written.map_err(syntax)?, warnings))
    }
}

/// The part of it that tells how the agent looks.
struct Looks {
    layout: Option<layout::Written>,
    screen: Vec<screen::Written>,
    title: Vec<title::Written>,
    dialog: Vec<dialog::Written>,
    answers: answers::Written,
}

fn yes() -> bool {
    true
}

fn first_version() -> u32 {
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
    pub(crate) status_file: Option<StatusFile>,
    pub(crate) log: Option<LogFile>,
    pub(crate) resume: Option<Resume>,
    /// Keys that this build does not know.
    pub(crate) warnings: Vec<String>,
    rules: OnceLock<Rules>,
    /// What the rules are compiled from when they are first needed.
    embedded: Option<&'static str>,
}

/// How an agent looks. Patterns take memory, and most people use few of the agents that are known.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) layout: Option<Layout>,
    /// The strongest first.
    pub(crate) screen: Vec<ScreenRule>,
    pub(crate) title: Vec<TitleRule>,
    pub(crate) dialog: Vec<DialogRule>,
    pub(crate) answers: answers::Answers,
}

impl Manifest {
    /// One of our own: its rules are compiled when they are needed.
    pub(crate) fn embedded(file: &str, text: &'static str) -> Result<Self, ManifestError> {
        let (written, warnings) = Written::read(file, text)?;
        let (manifest, _) =
            Self::without_rules(written, warnings).map_err(|problem| ManifestError::invalid(file, text, problem))?;
        Ok(Self { embedded: Some(text), ..manifest })
    }

    pub(crate) fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| {
            let compiled = self.embedded.map(|text| Self::parse(self.name.as_str(), text));
            let rules = compiled.and_then(Result::ok).and_then(|manifest| manifest.rules.into_inner());
            rules.unwrap_or_else(|| unreachable!("a test compiles the embedded manifests"))
        })
    }

    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let (written, warnings) = Written::read(file, text)?;
        Self::compile(written, warnings).map_err(|problem| ManifestError::invalid(file, text, problem))
    }

    fn compile(written: Written, warnings: Vec<String>) -> Result<Self, String> {
        let (manifest, looks) = Self::without_rules(written, warnings)?;
        let rules = Rules {
            layout: looks.layout.map(Layout::compile).transpose()?,
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

    fn without_rules(written: Written, warnings: Vec<String>) -> Result<(Self, Looks), String> {
        let name_is_plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !name_is_plain(written.name.as_str()) {
            return Err("'name' must consist of lower case letters, digits and '-'".into());
        }
        if let Some(problem) = written.process.problem() {
            return Err(problem.into());
        }
        let files = written.status_file.iter().filter_map(StatusFile::problem);
        let files = files.chain(written.log.iter().filter_map(LogFile::problem));
        let others = files.chain(written.resume.iter().filter_map(Resume::problem));
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
        let Written { layout, screen, title, dialog, answers, .. } = written;
        Ok((manifest, Looks { layout, screen, title, dialog, answers }))
    }
}

impl Rules {
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
        let stray = self.answers.dialogs().find(|name| !knows(name));
        stray.map(|name| format!("'answers.dialogs.{name}' is for a dialog that has no rule"))
    }
}

#[cfg(test)]
mod tests;
