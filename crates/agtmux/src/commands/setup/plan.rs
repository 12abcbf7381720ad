//! What would change, worked out before anything does.

use std::path::{Path, PathBuf};

use super::agents::{SettingsContent, SettingsFile, SetupAgent};
use super::command::HookCommand;
use super::edit::hooks::{HookFormat, HookShape};
use super::edit::{EditError, EditHints, flat_hooks, hooks, notify, own_file};
use super::files;
use super::record::{SetupRecord, SetupRecordEntry};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetupMode {
    Install,
    Uninstall,
}

/// One file, and what is to become of it.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) outcome: FileOutcome,
}

#[derive(Debug)]
pub(super) enum FileOutcome {
    /// It is as it should be.
    Nothing,
    Change(Box<FileChange>),
    Refused(String),
}

#[derive(Debug)]
pub(super) struct FileChange {
    /// Behind the links.
    pub(super) target: PathBuf,
    /// None: there is no such file.
    pub(super) before: Option<String>,
    /// None: it goes.
    pub(super) after: Option<String>,
    pub(super) entry: Option<SetupRecordEntry>,
    /// Whether there is anything in it that is not ours.
    pub(super) keeps_copy: bool,
    /// How many of the directories above it were made for it.
    pub(super) made_dirs: usize,
}

impl FilePlan {
    pub(super) fn is_change(&self) -> bool {
        matches!(self.outcome, FileOutcome::Change(_))
    }

    pub(super) fn is_removal(&self) -> bool {
        matches!(&self.outcome, FileOutcome::Change(change) if change.after.is_none())
    }
}

impl FileOutcome {
    /// Whether it comes to the same as what was shown, or to nothing any more.
    fn matches_shown(&self, shown: &Self) -> bool {
        match (self, shown) {
            (Self::Change(now), Self::Change(then)) => (&now.before, &now.after) == (&then.before, &then.after),
            (Self::Change(_), _) => false,
            _ => true,
        }
    }
}

/// What is to be done now, as far as it was agreed to.
pub(super) fn keep_agreed(shown: &[FilePlan], now: Vec<FilePlan>) -> Vec<FilePlan> {
    let agreed = |plan: FilePlan| {
        let then = shown.iter().find(|shown| shown.path == plan.path)?;
        let why = "it was changed after the changes were shown; run agtmux setup again";
        let outcome =
            if plan.outcome.matches_shown(&then.outcome) { plan.outcome } else { FileOutcome::Refused(why.into()) };
        Some(FilePlan { path: plan.path, outcome })
    };
    now.into_iter().filter_map(agreed).collect()
}

pub(super) fn plan(
    agent: &'static SetupAgent,
    dir: &Path,
    program: &str,
    aim: SetupMode,
    record: &SetupRecord,
) -> Vec<FilePlan> {
    let job = FilePlanner { ours: HookCommand::new(program, agent.name), aim, record };
    if aim == SetupMode::Install {
        return agent.files.iter().map(|file| job.plan(dir.join(file.name), file)).collect();
    }
    let here = agent.files.iter().filter(|_| dir.is_dir());
    let mut plans: Vec<FilePlan> = here.map(|file| job.plan(dir.join(file.name), file)).collect();
    // A variable that named another place then may have gone since.
    for (path, entry) in record.files_of(agent.name).filter(|(path, _)| path.exists()) {
        let is_planned = plans.iter().any(|plan| files::resolve_links(&plan.path).is_ok_and(|target| target == path));
        let file = agent.files.iter().find(|file| file.name == entry.file && !is_planned);
        plans.extend(file.map(|file| job.plan(path.to_owned(), file)));
    }
    plans
}

/// What is to be done for one agent.
struct FilePlanner<'a> {
    ours: HookCommand,
    aim: SetupMode,
    record: &'a SetupRecord,
}

impl FilePlanner<'_> {
    fn plan(&self, path: PathBuf, file: &SettingsFile) -> FilePlan {
        let outcome = match self.change(&path, file) {
            Ok(Some(change)) => FileOutcome::Change(Box::new(change)),
            Ok(None) => FileOutcome::Nothing,
            Err(why) => FileOutcome::Refused(why),
        };
        FilePlan { path, outcome }
    }

    fn change(&self, path: &Path, file: &SettingsFile) -> Result<Option<FileChange>, String> {
        let (content, ours) = (&file.content, &self.ours);
        let target = files::resolve_links(path).map_err(|error| error.to_string())?;
        let before = match files::read(&target).map_err(|error| error.to_string())? {
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|error| not_utf8(&error))?),
            None => None,
        };
        let text = before.as_deref().unwrap_or_default();
        let known = self.record.entry(&target);
        let told = |fault: EditError| format!("line {}: {}", fault.line, fault.why);
        let holds_ours = content.installed_program(text, &known.hints, ours).map_err(told)?.is_some();
        let clean = if holds_ours { content.remove(text, &known.hints, ours).map_err(told)? } else { text.to_owned() };
        let is_whole = matches!(content, SettingsContent::Whole(_));
        let created = if holds_ours { known.created || content.is_own_file() } else { before.is_none() };
        let missing_dirs = target.ancestors().skip(1).take_while(|dir| !dir.exists()).count();
        // Those of a setup that was killed after it had made them are there, and ours all the same.
        let made_dirs = self.record.made_dirs(&target).max(missing_dirs);
        match self.aim {
            SetupMode::Uninstall if !holds_ours => Ok(None),
            SetupMode::Uninstall => {
                let after = Some(clean).filter(|clean| !(created && clean.trim().is_empty()));
                let all_ours = is_whole || after.is_none() && content.is_as_written(text, &known.hints, ours);
                Ok(Some(FileChange { target, before, after, entry: None, keeps_copy: !all_ours, made_dirs }))
            }
            SetupMode::Install if content.is_current(text, &known.hints, ours).map_err(told)? => Ok(None),
            SetupMode::Install => {
                let (after, hints) = content.install(&clean, ours).map_err(told)?;
                // Nothing is put in that could not be taken out again.
                if content.remove(&after, &hints, ours).as_deref() != Ok(clean.as_str()) {
                    return Err("it has a form that agtmux could not restore exactly, so it is left alone".into());
                }
                let (agent, file) = (ours.agent().to_owned(), file.name.to_owned());
                let entry = Some(SetupRecordEntry { agent, file, created, made_dirs, hints });
                Ok(Some(FileChange { target, before, after: Some(after), entry, keeps_copy: !is_whole, made_dirs }))
            }
        }
    }
}

fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let valid = error.utf8_error().valid_up_to();
    let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line}: it is not UTF-8")
}

impl SettingsContent {
    /// Whether nobody else has a reason to make such a file.
    fn is_own_file(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Hooks(HookFormat { shape: HookShape::Own { .. }, .. }))
    }

    /// The program that the entries of ours in it call. None where there are none.
    fn installed_program(
        &self,
        text: &str,
        hints: &EditHints,
        ours: &HookCommand,
    ) -> Result<Option<String>, EditError> {
        let found = match self {
            Self::Hooks(format) => hooks::installed(text, format, hints, ours)?,
            Self::FlatHooks(events) => flat_hooks::installed(text, events, hints, ours)?,
            Self::Notify => return notify::program(text, ours),
            Self::Whole(_) => return own_file::is_installed(text).map(|is| is.then(|| ours.program().to_owned())),
        };
        Ok(found.first().and_then(|(event, command)| ours.program_in(command, event)))
    }

    /// Whether it is to the byte what an agtmux, wherever it is, puts where nothing was.
    fn is_as_written(&self, text: &str, hints: &EditHints, ours: &HookCommand) -> bool {
        let Ok(Some(author)) = self.installed_program(text, hints, ours) else { return false };
        self.install("", &ours.with_program(&author)).is_ok_and(|(written, _)| written == text)
    }

    fn is_current(&self, text: &str, hints: &EditHints, ours: &HookCommand) -> Result<bool, EditError> {
        match self {
            Self::Hooks(format) => hooks::is_current(text, format, hints, ours),
            Self::FlatHooks(events) => flat_hooks::is_current(text, events, hints, ours),
            Self::Notify => notify::is_current(text, ours),
            Self::Whole(template) => Ok(own_file::is_current(text, template, ours)),
        }
    }

    fn install(&self, text: &str, ours: &HookCommand) -> Result<(String, EditHints), EditError> {
        match self {
            Self::Hooks(format) => hooks::install(text, format, ours),
            Self::FlatHooks(events) => flat_hooks::install(text, events, ours),
            Self::Notify => notify::install(text, ours),
            Self::Whole(template) => own_file::install(text, template, ours),
        }
    }

    fn remove(&self, text: &str, hints: &EditHints, ours: &HookCommand) -> Result<String, EditError> {
        match self {
            Self::Hooks(format) => hooks::remove(text, format, hints, ours),
            Self::FlatHooks(events) => flat_hooks::remove(text, events, hints, ours),
            Self::Notify => notify::remove(text, hints, ours),
            Self::Whole(_) => Ok(String::new()),
        }
    }
}
