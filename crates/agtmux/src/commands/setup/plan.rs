//! What would change, worked out before anything does.

use std::path::{Path, PathBuf};

use super::agents::{Agent, Content, SettingsFile};
use super::command::OurCommand;
use super::edit::hooks::{Format, Shape};
use super::edit::{Fault, Hints, flat, hooks, notify, whole};
use super::files;
use super::record::{Entry, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Install,
    Uninstall,
}

/// One file, and what is to become of it.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// It is as it should be.
    Nothing,
    Change(Box<Change>),
    Refused(String),
}

#[derive(Debug)]
pub(super) struct Change {
    /// Behind the links.
    pub(super) target: PathBuf,
    /// None: there is no such file.
    pub(super) before: Option<String>,
    /// None: it goes.
    pub(super) after: Option<String>,
    pub(super) entry: Option<Entry>,
    /// Whether there is anything in it that is not ours.
    pub(super) keeps_copy: bool,
    /// How many of the directories above it were made for it.
    pub(super) made_dirs: usize,
}

impl FilePlan {
    pub(super) fn is_removal(&self) -> bool {
        matches!(&self.outcome, Outcome::Change(change) if change.after.is_none())
    }
}

pub(super) fn plan(agent: &'static Agent, dir: &Path, program: &str, aim: Aim, record: &Record) -> Vec<FilePlan> {
    let ours = OurCommand::new(program, agent.name);
    let one = |file: &SettingsFile| {
        let path = dir.join(file.name);
        let outcome = match change(&path, &file.content, &ours, aim, record) {
            Ok(Some(change)) => Outcome::Change(Box::new(change)),
            Ok(None) => Outcome::Nothing,
            Err(why) => Outcome::Refused(why),
        };
        FilePlan { path, outcome }
    };
    agent.files.iter().map(one).collect()
}

fn change(
    path: &Path,
    content: &Content,
    ours: &OurCommand,
    aim: Aim,
    record: &Record,
) -> Result<Option<Change>, String> {
    let target = files::target_of(path).map_err(|error| error.to_string())?;
    let before = match files::read(&target).map_err(|error| error.to_string())? {
        Some(bytes) => Some(String::from_utf8(bytes).map_err(|error| not_text(&error))?),
        None => None,
    };
    let text = before.as_deref().unwrap_or_default();
    let known = record.of(&target);
    let told = |fault: Fault| format!("line {}: {}", fault.line, fault.why);
    let holds_ours = content.holds_ours(text, ours).map_err(told)?;
    let clean = if holds_ours { content.remove(text, &known.hints, ours).map_err(told)? } else { text.to_owned() };
    let is_whole = matches!(content, Content::Whole(_));
    let created = if holds_ours { known.created || content.is_own_file() } else { before.is_none() };
    let keeps_copy = !is_whole;
    let missing_dirs = || target.ancestors().skip(1).take_while(|dir| !dir.exists()).count();
    let made_dirs = if holds_ours { known.made_dirs } else { missing_dirs() };
    match aim {
        Aim::Uninstall if !holds_ours => Ok(None),
        Aim::Uninstall => {
            let after = Some(clean).filter(|clean| !(created && clean.trim().is_empty()));
            Ok(Some(Change { target, before, after, entry: None, keeps_copy, made_dirs }))
        }
        Aim::Install if content.is_current(text, ours).map_err(told)? => Ok(None),
        Aim::Install => {
            let (after, hints) = content.install(&clean, ours).map_err(told)?;
            // Nothing is put in that could not be taken out again.
            if content.remove(&after, &hints, ours).as_deref() != Ok(clean.as_str()) {
                return Err("it has a form that agtmux could not restore exactly, so it is left alone".into());
            }
            let entry = Some(Entry { created, made_dirs, hints });
            Ok(Some(Change { target, before, after: Some(after), entry, keeps_copy, made_dirs }))
        }
    }
}

fn not_text(error: &std::string::FromUtf8Error) -> String {
    let valid = error.utf8_error().valid_up_to();
    let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line}: it is not UTF-8")
}

impl Content {
    /// Whether nobody else has a reason to make such a file.
    fn is_own_file(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Hooks(Format { shape: Shape::Own { .. }, .. }))
    }

    fn holds_ours(&self, text: &str, ours: &OurCommand) -> Result<bool, Fault> {
        match self {
            Self::Hooks(_) => hooks::installed(text, ours).map(|found| !found.is_empty()),
            Self::FlatHooks(_) => flat::installed(text, ours).map(|found| !found.is_empty()),
            Self::Notify => notify::is_installed(text, ours),
            Self::Whole(_) => whole::is_installed(text),
        }
    }

    fn is_current(&self, text: &str, ours: &OurCommand) -> Result<bool, Fault> {
        match self {
            Self::Hooks(format) => hooks::is_current(text, format, ours),
            Self::FlatHooks(events) => flat::is_current(text, events, ours),
            Self::Notify => notify::is_current(text, ours),
            Self::Whole(template) => Ok(whole::is_current(text, template, ours)),
        }
    }

    fn install(&self, text: &str, ours: &OurCommand) -> Result<(String, Hints), Fault> {
        match self {
            Self::Hooks(format) => hooks::install(text, format, ours),
            Self::FlatHooks(events) => flat::install(text, events, ours),
            Self::Notify => notify::install(text, ours),
            Self::Whole(template) => whole::install(text, template, ours),
        }
    }

    fn remove(&self, text: &str, hints: &Hints, ours: &OurCommand) -> Result<String, Fault> {
        match self {
            Self::Hooks(format) => hooks::remove(text, format, hints, ours),
            Self::FlatHooks(_) => flat::remove(text, hints, ours),
            Self::Notify => notify::remove(text, hints, ours),
            Self::Whole(_) => Ok(String::new()),
        }
    }
}
