//! Plans the changes of settings files, before anything is written.

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

/// One settings file and its planned change.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) outcome: FileOutcome,
}

#[derive(Debug)]
pub(super) enum FileOutcome {
    /// The file needs no change.
    Nothing,
    Change(Box<FileChange>),
    Refused(String),
}

#[derive(Debug)]
pub(super) struct FileChange {
    /// The path with links resolved.
    pub(super) target: PathBuf,
    /// `None` if the file does not exist.
    pub(super) before: Option<String>,
    /// `None` if the file is removed.
    pub(super) after: Option<String>,
    pub(super) entry: Option<SetupRecordEntry>,
    /// Whether to keep a backup: the file holds content that setup did not write.
    pub(super) keeps_copy: bool,
    /// How many directories above the file setup created.
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
    /// Whether this outcome makes the shown change or no change.
    fn matches_shown(&self, shown: &Self) -> bool {
        match (self, shown) {
            (Self::Change(now), Self::Change(then)) => (&now.before, &now.after) == (&then.before, &then.after),
            (Self::Change(_), _) => false,
            _ => true,
        }
    }
}

/// Keeps the changes that the user has seen. A file that differs from the shown plan is refused.
pub(super) fn keep_agreed(shown: &[FilePlan], now: Vec<FilePlan>) -> Vec<FilePlan> {
    let agreed = |plan: FilePlan| {
        let then = shown.iter().find(|shown| shown.path == plan.path)?;
        let why = "the file was changed after the changes were shown; run agtmux setup again";
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
    mode: SetupMode,
    record: &SetupRecord,
) -> Vec<FilePlan> {
    let job = FilePlanner { hook_command: HookCommand::new(program, agent.name), mode, record };
    if mode == SetupMode::Install {
        return agent.files.iter().map(|file| job.plan(dir.join(file.name), file)).collect();
    }
    let here = agent.files.iter().filter(|_| dir.is_dir());
    let mut plans: Vec<FilePlan> = here.map(|file| job.plan(dir.join(file.name), file)).collect();
    // A variable that moved the settings at install time may be unset now.
    for (path, entry) in record.files_of(agent.name).filter(|(path, _)| path.exists()) {
        let is_planned = plans.iter().any(|plan| files::resolve_links(&plan.path).is_ok_and(|target| target == path));
        let file = agent.files.iter().find(|file| file.name == entry.file && !is_planned);
        plans.extend(file.map(|file| job.plan(path.to_owned(), file)));
    }
    plans
}

/// Plans the files of one agent.
struct FilePlanner<'a> {
    hook_command: HookCommand,
    mode: SetupMode,
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
        let (content, hook_command) = (&file.content, &self.hook_command);
        let target = files::resolve_links(path).map_err(|error| error.to_string())?;
        let before = match files::read(&target).map_err(|error| error.to_string())? {
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|error| not_utf8(&error))?),
            None => None,
        };
        let text = before.as_deref().unwrap_or_default();
        let known = self.record.entry(&target);
        let message = |fault: EditError| format!("line {}: {}", fault.line, fault.why);
        let has_hooks = content.installed_program(text, &known.hints, hook_command).map_err(message)?.is_some();
        let clean = if has_hooks {
            content.remove(text, &known.hints, hook_command).map_err(message)?
        } else {
            text.to_owned()
        };
        let is_whole = matches!(content, SettingsContent::Whole(_));
        let created = if has_hooks { known.created || content.is_own_file() } else { before.is_none() };
        let missing_dirs = target.ancestors().skip(1).take_while(|dir| !dir.exists()).count();
        // Count directories that a killed setup created, too.
        let made_dirs = self.record.made_dirs(&target).max(missing_dirs);
        match self.mode {
            SetupMode::Uninstall if !has_hooks => Ok(None),
            SetupMode::Uninstall => {
                let after = Some(clean).filter(|clean| !(created && clean.trim().is_empty()));
                let is_all_own = is_whole || after.is_none() && content.is_as_written(text, &known.hints, hook_command);
                Ok(Some(FileChange { target, before, after, entry: None, keeps_copy: !is_all_own, made_dirs }))
            }
            SetupMode::Install if content.is_current(text, &known.hints, hook_command).map_err(message)? => Ok(None),
            SetupMode::Install => {
                let (after, hints) = content.install(&clean, hook_command).map_err(message)?;
                // Install only what uninstall can remove exactly.
                if content.remove(&after, &hints, hook_command).as_deref() != Ok(clean.as_str()) {
                    return Err("agtmux could not restore this file exactly later, so it was not changed".into());
                }
                let (agent, file) = (hook_command.agent().to_owned(), file.name.to_owned());
                let entry = Some(SetupRecordEntry { agent, file, created, made_dirs, hints });
                Ok(Some(FileChange { target, before, after: Some(after), entry, keeps_copy: !is_whole, made_dirs }))
            }
        }
    }
}

fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let valid = error.utf8_error().valid_up_to();
    let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line}: not UTF-8")
}

impl SettingsContent {
    /// Whether only agtmux creates such a file.
    fn is_own_file(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Hooks(HookFormat { shape: HookShape::Own { .. }, .. }))
    }

    /// The path of agtmux in the installed hooks. `None` if no hooks are installed.
    fn installed_program(
        &self,
        text: &str,
        hints: &EditHints,
        hook_command: &HookCommand,
    ) -> Result<Option<String>, EditError> {
        let found = match self {
            Self::Hooks(format) => hooks::installed(text, format, hints, hook_command)?,
            Self::FlatHooks(events) => flat_hooks::installed(text, events, hints, hook_command)?,
            Self::Notify => return notify::program(text, hook_command),
            Self::Whole(_) => {
                return own_file::is_installed(text).map(|is| is.then(|| hook_command.program().to_owned()));
            }
        };
        Ok(found.first().and_then(|(event, command)| hook_command.program_in(command, event)))
    }

    /// Whether the text is exactly what setup writes into an empty file, with any path of agtmux.
    fn is_as_written(&self, text: &str, hints: &EditHints, hook_command: &HookCommand) -> bool {
        let Ok(Some(author)) = self.installed_program(text, hints, hook_command) else { return false };
        self.install("", &hook_command.with_program(&author)).is_ok_and(|(written, _)| written == text)
    }

    fn is_current(&self, text: &str, hints: &EditHints, hook_command: &HookCommand) -> Result<bool, EditError> {
        match self {
            Self::Hooks(format) => hooks::is_current(text, format, hints, hook_command),
            Self::FlatHooks(events) => flat_hooks::is_current(text, events, hints, hook_command),
            Self::Notify => notify::is_current(text, hook_command),
            Self::Whole(template) => Ok(own_file::is_current(text, template, hook_command)),
        }
    }

    fn install(&self, text: &str, hook_command: &HookCommand) -> Result<(String, EditHints), EditError> {
        match self {
            Self::Hooks(format) => hooks::install(text, format, hook_command),
            Self::FlatHooks(events) => flat_hooks::install(text, events, hook_command),
            Self::Notify => notify::install(text, hook_command),
            Self::Whole(template) => own_file::install(text, template, hook_command),
        }
    }

    fn remove(&self, text: &str, hints: &EditHints, hook_command: &HookCommand) -> Result<String, EditError> {
        match self {
            Self::Hooks(format) => hooks::remove(text, format, hints, hook_command),
            Self::FlatHooks(events) => flat_hooks::remove(text, events, hints, hook_command),
            Self::Notify => notify::remove(text, hints, hook_command),
            Self::Whole(_) => Ok(String::new()),
        }
    }
}
