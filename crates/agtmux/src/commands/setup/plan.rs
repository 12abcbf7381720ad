//! Plans the changes of settings files, before anything is written.

use std::path::{Path, PathBuf};

use agtmux_agents::{SetupFile, SetupFormat};

use super::agents::SetupAgent;
use super::command::{HookCommand, McpCommand};
use super::edit::hooks::HookEditor;
use super::edit::mcp_json::McpJsonEditor;
use super::edit::mcp_toml::McpTomlEditor;
use super::edit::notify::NotifyEditor;
use super::edit::own_file::OwnFileEditor;
use super::edit::package_file::PackageFileEditor;
use super::edit::package_list::PackageListEditor;
use super::edit::{BYTE_ORDER_MARK, EditError, SettingsEditor};
use super::files;
use super::record::{SetupRecord, SetupRecordEntry};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetupMode {
    Install,
    Uninstall,
}

/// What setup installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetupSubject {
    Hooks,
    McpServer,
}

impl SetupSubject {
    fn files(self, agent: &SetupAgent) -> &'static [SetupFile] {
        match self {
            Self::Hooks => &agent.setup.files,
            Self::McpServer => &agent.setup.mcp_files,
        }
    }

    /// What a file without a change has.
    pub(super) fn nothing(self, mode: SetupMode) -> &'static str {
        match (self, mode) {
            (_, SetupMode::Install) => "up to date",
            (Self::Hooks, SetupMode::Uninstall) => "no hooks of agtmux",
            (Self::McpServer, SetupMode::Uninstall) => "no MCP server of agtmux",
        }
    }
}

/// Each agent with the plans for its settings files.
pub(super) type AgentPlans = Vec<(&'static SetupAgent, Vec<FilePlan>)>;

/// One settings file, its planned change and the result.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) outcome: FileOutcome,
    pub(super) result: FileResult,
}

#[derive(Debug, Default)]
pub(super) struct FileResult {
    pub(super) applied: bool,
    pub(super) backup: Option<PathBuf>,
    pub(super) error: Option<String>,
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
    /// The path of the file, with symbolic links resolved.
    pub(super) target: PathBuf,
    /// The content before the change. `None` if the file does not exist.
    pub(super) before: Option<String>,
    /// The content after the change. `None` if setup removes the file.
    pub(super) after: Option<String>,
    pub(super) entry: Option<SetupRecordEntry>,
    /// Whether to keep a backup, because the file holds content that setup did not write.
    pub(super) keeps_copy: bool,
    /// How many parent directories setup created for the file.
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

/// Returns the new plans of the files that were shown to the user. Refuses a change that differs from the change that
/// was shown.
pub(super) fn keep_agreed(shown: &[FilePlan], now: Vec<FilePlan>) -> Vec<FilePlan> {
    let agreed = |plan: FilePlan| {
        let then = shown.iter().find(|shown| shown.path == plan.path)?;
        let why = "the file was changed after the changes were shown; run agtmux setup again";
        let is_agreed = match (&plan.outcome, &then.outcome) {
            (FileOutcome::Change(now), FileOutcome::Change(then)) => {
                (&now.before, &now.after) == (&then.before, &then.after)
            }
            (FileOutcome::Change(_), _) => false,
            _ => true,
        };
        Some(if is_agreed { plan } else { FilePlan { outcome: FileOutcome::Refused(why.into()), ..plan } })
    };
    now.into_iter().filter_map(agreed).collect()
}

/// Where the files of an agent are.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetupDirs<'a> {
    /// The settings directory of the agent.
    pub(super) settings: &'a Path,
    /// The data directory of agtmux, for packages.
    pub(super) data: &'a Path,
    /// HOME, unless a variable has moved the settings directory.
    pub(super) home: Option<&'a Path>,
}

impl SetupDirs<'_> {
    pub(super) fn path_of(&self, file: &SetupFile) -> PathBuf {
        if let (Some(home), Some(path)) = (self.home, &file.home_path) {
            return home.join(path);
        }
        let dir = if file.format == SetupFormat::Package { self.data } else { self.settings };
        dir.join(&file.path)
    }
}

pub(super) fn plan(
    agent: &'static SetupAgent,
    dirs: SetupDirs<'_>,
    program: &str,
    (subject, mode): (SetupSubject, SetupMode),
    record: &SetupRecord,
) -> Vec<FilePlan> {
    let job = FilePlanner { hook_command: HookCommand::new(program, agent.name), mode, record, data: dirs.data };
    let subject_files = subject.files(agent);
    let wanted = subject_files.iter().filter(|file| match file.format {
        SetupFormat::Obsolete => dirs.path_of(file).exists(),
        _ => mode == SetupMode::Install || dirs.settings.is_dir() || dirs.path_of(file).exists(),
    });
    let mut plans: Vec<FilePlan> = wanted.map(|file| job.plan(dirs.path_of(file), file)).collect();
    if mode == SetupMode::Install {
        return plans;
    }
    // Include the recorded files: a variable that moved the settings at install time may be unset now.
    for (path, entry) in record.files_of(agent.name).filter(|(path, _)| path.exists()) {
        let is_planned = plans.iter().any(|plan| files::resolve_links(&plan.path).is_ok_and(|target| target == path));
        let file = subject_files.iter().find(|file| file.path == entry.file && !is_planned);
        plans.extend(file.map(|file| job.plan(path.to_owned(), file)));
    }
    plans
}

/// The file in which the agent's MCP servers are registered, and the text that setup writes into an empty file.
pub(super) fn mcp_text(agent: &'static SetupAgent, program: &str) -> Option<(&'static SetupFile, String)> {
    let file = agent.setup.mcp_files.first()?;
    let (record, hook_command) = (SetupRecord::default(), HookCommand::new(program, agent.name));
    let planner = FilePlanner { hook_command, mode: SetupMode::Install, record: &record, data: Path::new("") };
    let (text, _) = planner.editor_of(file, planner.hook_command.clone()).install("").ok()?;
    Some((file, text))
}

/// Plans the files of one agent.
struct FilePlanner<'a> {
    hook_command: HookCommand,
    mode: SetupMode,
    record: &'a SetupRecord,
    data: &'a Path,
}

impl FilePlanner<'_> {
    fn plan(&self, path: PathBuf, file: &'static SetupFile) -> FilePlan {
        let outcome = match self.change(&path, file) {
            Ok(Some(change)) => FileOutcome::Change(Box::new(change)),
            Ok(None) => FileOutcome::Nothing,
            Err(why) => FileOutcome::Refused(why),
        };
        FilePlan { path, outcome, result: FileResult::default() }
    }

    fn change(&self, path: &Path, file: &'static SetupFile) -> Result<Option<FileChange>, String> {
        let editor = self.editor_of(file, self.hook_command.clone());
        let target = files::resolve_links(path).map_err(|error| error.to_string())?;
        let before = files::read(&target).map_err(|error| error.to_string())?;
        let before = before.map(String::from_utf8).transpose().map_err(|error| not_utf8(&error))?;
        let whole = before.as_deref().unwrap_or_default();
        let text = whole.trim_start_matches(BYTE_ORDER_MARK);
        let mark = whole[..whole.len() - text.len()].to_owned();
        let SetupRecordEntry { hints, created, .. } = self.record.entry(&target);
        let message = |fault: EditError| format!("line {}: {}", fault.line, fault.why);
        let author = editor.installed_program(text, &hints).map_err(message)?;
        let clean = match author {
            Some(_) => editor.remove(text, &hints).map_err(message)?,
            None => text.to_owned(),
        };
        let is_whole = matches!(file.format, SetupFormat::Extension | SetupFormat::Package | SetupFormat::Obsolete);
        // Only agtmux creates files in these formats.
        let is_own_file = is_whole || file.format == SetupFormat::Own;
        let created = if author.is_some() { created || is_own_file } else { before.is_none() };
        let missing_dirs = target.ancestors().skip(1).take_while(|dir| !dir.exists()).count();
        // Count directories that a killed setup created, too.
        let made_dirs = self.record.made_dirs(&target).max(missing_dirs);
        match (self.mode, author) {
            (SetupMode::Install, Some(_)) if file.format == SetupFormat::Obsolete => {
                Ok(Some(FileChange { target, before, after: None, entry: None, keeps_copy: false, made_dirs }))
            }
            (SetupMode::Uninstall, None) => Ok(None),
            (SetupMode::Install, None) if file.format == SetupFormat::Obsolete => Ok(None),
            (SetupMode::Uninstall, Some(author)) => {
                let after = Some(clean).filter(|clean| !(created && clean.trim().is_empty()));
                // Whether the text is exactly what setup writes into an empty file, with any path of agtmux.
                let writer = self.editor_of(file, HookCommand::new(&author, self.hook_command.agent));
                let is_as_written = || writer.install("").is_ok_and(|(written, _)| written == whole);
                let is_all_own = is_whole || after.is_none() && is_as_written();
                let after = after.map(|after| mark + &after);
                Ok(Some(FileChange { target, before, after, entry: None, keeps_copy: !is_all_own, made_dirs }))
            }
            (SetupMode::Install, _) if editor.is_current(text, &hints).map_err(message)? => Ok(None),
            (SetupMode::Install, _) => {
                let (after, hints) = editor.install(&clean).map_err(message)?;
                // Install only what uninstall can remove exactly.
                if editor.remove(&after, &hints).as_deref() != Ok(clean.as_str()) {
                    return Err("not changed: `agtmux setup --uninstall` would not restore this file exactly".into());
                }
                let (agent, file) = (self.hook_command.agent.to_owned(), file.path.clone());
                let entry = Some(SetupRecordEntry { agent, file, created, made_dirs, hints });
                let after = Some(mark + &after);
                Ok(Some(FileChange { target, before, after, entry, keeps_copy: !is_whole, made_dirs }))
            }
        }
    }

    fn editor_of(&self, file: &'static SetupFile, hook_command: HookCommand) -> Box<dyn SettingsEditor> {
        let template = file.extension_text().unwrap_or_default();
        match file.format {
            SetupFormat::Grouped | SetupFormat::Own | SetupFormat::Flat => Box::new(HookEditor { file, hook_command }),
            SetupFormat::Notify => Box::new(NotifyEditor { hook_command }),
            SetupFormat::Extension | SetupFormat::Obsolete => Box::new(OwnFileEditor { template, hook_command }),
            SetupFormat::Package => Box::new(PackageFileEditor { template, hook_command }),
            SetupFormat::McpJson => Box::new(McpJsonEditor { file, command: McpCommand::new(&hook_command.program) }),
            SetupFormat::McpToml => Box::new(McpTomlEditor { command: McpCommand::new(&hook_command.program) }),
            SetupFormat::PackageList => {
                let package = self.data.join(file.package.as_deref().unwrap_or_default());
                Box::new(PackageListEditor { package: package.display().to_string(), hook_command })
            }
        }
    }
}

fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let valid = error.utf8_error().valid_up_to();
    let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
    format!("line {line}: not UTF-8")
}
