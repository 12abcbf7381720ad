//! `agtmux setup`: installs and removes agtmux's hooks in the settings files of agents.

mod agents;
mod command;
mod edit;
mod files;
mod plan;
mod record;
mod report;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use agtmux_agents::AgentRegistry;
use agtmux_api::paths::Paths;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use crate::{input, output};
use agents::SetupAgent;
use plan::{AgentPlans, FileChange, FileOutcome, FileResult, SetupDirs, SetupMode, SetupSubject};
use record::SetupRecord;
use report::ChangeDetail;

#[derive(Debug, Args)]
#[command(after_help = "Apart from its own entries, setup leaves every byte of a settings file unchanged. Before a \
    change, setup copies the settings file to a backup beside it and replaces the previous backup. You can run setup \
    again at any time. If the agtmux program has moved, setup updates the path in its hooks.\n\n\
    Exits with 1 if a file could not be changed or you did not confirm.\n\n\
    Examples:\n  agtmux setup --dry-run\n  agtmux setup --agent claude --yes\n  agtmux setup --mcp\n  \
    agtmux setup --uninstall")]
pub(crate) struct SetupArgs {
    /// Set up only this agent; you can give this option several times [default: every agent found]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AgentRegistry::setup_names()))]
    agent: Vec<String>,
    /// Print the lines that would change, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Register the MCP server (`agtmux mcp`) instead of installing the hooks
    #[arg(long)]
    mcp: bool,
    /// Remove the hooks, or with --mcp the MCP server
    #[arg(long)]
    uninstall: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SetupArgs) -> CliResult {
    let mode = if args.uninstall { SetupMode::Uninstall } else { SetupMode::Install };
    let subject = if args.mcp { SetupSubject::McpServer } else { SetupSubject::Hooks };
    let paths = Paths::from_env()?;
    let record = SetupRecord::load(subject.record_path(&paths));
    let program = program(mode)?;
    let data = agents::data_dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
    let (here, missing) = select_agents(args, mode, &record)?;
    if here.is_empty() && mode == SetupMode::Install {
        return Err(no_agents_found(&missing));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let work_out = |record: &SetupRecord| -> AgentPlans {
        let of_agent = |(agent, dir): &(&'static SetupAgent, PathBuf)| {
            let home = home.as_deref().filter(|_| !agent.is_moved(|name| std::env::var_os(name)));
            let dirs = SetupDirs { settings: dir, data: &data, home };
            (*agent, plan::plan(agent, dirs, &program, (subject, mode), record))
        };
        here.iter().map(of_agent).collect()
    };
    let plans = work_out(&record);
    let changes = plans.iter().flat_map(|(_, files)| files).filter(|file| file.is_change()).count();
    let detail = if args.dry_run { ChangeDetail::Diff } else { ChangeDetail::Summary };
    let printed = if args.json { Ok(()) } else { print_plans(&plans, subject.nothing(mode), detail) };
    if changes > 0 && !args.dry_run && !args.yes {
        printed.as_ref().map_err(|_| plans_not_printed(args))?;
        confirm(args)?;
    }
    let reports = if args.dry_run || changes == 0 {
        if !args.dry_run {
            remove_leftovers_locked(&plans, mode, &paths, &record.path);
        }
        with_results(plans, |_| FileResult::default())
    } else {
        apply_plans(args, &plans, mode, (&paths, &record.path), work_out)?
    };
    let ended = if args.json {
        output::json(&report::document(&reports, &missing))
    } else if !args.dry_run && changes > 0 {
        print_results(&reports, subject, mode)
    } else {
        Ok(())
    };
    // The exit code reports a failed change even if stdout is closed.
    let failed = reports.iter().flat_map(|(_, files)| files).any(|file| file.result.error.is_some());
    if failed { Err(CliError::silent(CliExit::Failed)) } else { printed.and(ended) }
}

/// The installed agents that have hooks, and whether the hooks of agtmux are complete.
pub(crate) fn hook_status() -> CliResult<Vec<(&'static str, bool)>> {
    let (subject, mode) = (SetupSubject::Hooks, SetupMode::Install);
    let args = SetupArgs { agent: Vec::new(), mcp: false, dry_run: true, yes: false, uninstall: false, json: false };
    let record = SetupRecord::load(subject.record_path(&Paths::from_env()?));
    let program = program(mode)?;
    let data = agents::data_dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
    let (here, _) = select_agents(&args, mode, &record)?;
    let status = |(agent, dir): (&'static SetupAgent, PathBuf)| {
        let dirs = SetupDirs { settings: &dir, data: &data, home: None };
        let files = plan::plan(agent, dirs, &program, (subject, mode), &record);
        (agent.name, !files.iter().any(plan::FilePlan::is_change))
    };
    Ok(here.into_iter().map(status).collect())
}

/// What the user has to do after the MCP server was registered.
const MCP_NEXT: &str = "Restart running sessions to load the server. docs/mcp.md describes what it lets the agent do.";

impl SetupSubject {
    fn record_path(self, paths: &Paths) -> PathBuf {
        match self {
            Self::Hooks => paths.setup_record(),
            Self::McpServer => paths.mcp_setup_record(),
        }
    }
}

/// The agents in which setup can register the MCP server.
pub(crate) fn mcp_clients() -> impl Iterator<Item = &'static str> {
    agents::ALL.iter().filter(|agent| !agent.setup.mcp_files.is_empty()).map(|agent| agent.name)
}

/// The settings file of an agent, and the text that registers the MCP server in it.
pub(crate) fn mcp_config(client: &str) -> CliResult<Option<(PathBuf, String)>> {
    let program = program(SetupMode::Install)?;
    let Some(agent) = agents::ALL.iter().find(|agent| agent.name == client) else { return Ok(None) };
    let settings = agent.dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.as_deref().filter(|_| !agent.is_moved(|name| std::env::var_os(name)));
    let text = plan::mcp_text(agent, &program);
    Ok(text.map(|(file, text)| (SetupDirs { settings: &settings, data: &settings, home }.path_of(file), text)))
}

/// The path of agtmux to write into the hooks. Fails if a later uninstall could not recognise hooks with this path.
fn program(mode: SetupMode) -> CliResult<String> {
    let path = command::own_path().map_err(|error| CliError::io("find the agtmux program", error))?;
    if let Some(message) = command::name_problem(&path).filter(|_| mode == SetupMode::Install) {
        return Err(CliError::failed(message));
    }
    path.into_os_string().into_string().map_err(|path| {
        let path = path.display().to_string();
        CliError::failed(format!("the path of agtmux is not UTF-8: '{path}'"))
    })
}

type FoundAgents = Vec<(&'static SetupAgent, PathBuf)>;

/// Returns the agents to set up or to uninstall, with their settings directories. Also returns the names of the agents
/// of which nothing was found on this machine.
fn select_agents(
    args: &SetupArgs,
    mode: SetupMode,
    record: &SetupRecord,
) -> CliResult<(FoundAgents, Vec<&'static str>)> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    let selected = &args.agent;
    // An agent without a file for MCP servers does not speak MCP.
    let known = agents::ALL.iter().filter(|agent| !args.mcp || !agent.setup.mcp_files.is_empty());
    for agent in known {
        if !selected.is_empty() && !selected.iter().any(|name| name == agent.name) {
            continue;
        }
        let dir = agent.dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
        let wanted = match mode {
            SetupMode::Uninstall => dir.is_dir() || record.files_of(agent.name).next().is_some(),
            SetupMode::Install => agent.is_installed(&dir) || !selected.is_empty(),
        };
        if !wanted {
            missing.push(agent.name);
            continue;
        }
        if let Some((variable, value)) = agent.ignored_variable(|name| std::env::var_os(name)) {
            warn_ignored_variable(variable, &value, &dir);
        }
        here.push((agent, dir));
    }
    Ok((here, missing))
}

fn warn_ignored_variable(variable: &str, value: &Path, used: &Path) {
    CliMessage::new(format!("ignoring {variable}: '{}' is not an absolute path", value.display()))
        .because(format!("using the settings in '{}' instead", used.display()))
        .hint(format!("{variable}=\"$PWD/{}\" agtmux setup", value.display()))
        .print_stderr();
}

fn no_home() -> CliError {
    CliError::usage("cannot find the settings of agents: HOME is not set")
}

fn no_agents_found(missing: &[&str]) -> CliError {
    CliError::failed("no agent found")
        .because(format!("looked for the programs and settings of {}", missing.join(", ")))
        .hint("agtmux setup --agent claude   (also works if claude is not installed yet)")
}

fn print_plans(plans: &AgentPlans, nothing: &str, detail: ChangeDetail) -> CliResult {
    for (agent, files) in plans {
        output::styled_lines(&report::lines(agent, files, nothing, detail))?;
    }
    Ok(())
}

fn plans_not_printed(args: &SetupArgs) -> CliError {
    CliError::failed("nothing was changed, because the planned changes could not be printed first")
        .because("stdout is closed")
        .hint(format!("{}   (without confirmation)", yes_command(args)))
}

fn yes_command(args: &SetupArgs) -> String {
    let flags = [(args.mcp, " --mcp"), (args.uninstall, " --uninstall")];
    let flags = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| *flag);
    format!("agtmux setup{} --yes", flags.collect::<String>())
}

/// Asks for confirmation on the terminal. Fails if the user declines, or without a terminal.
fn confirm(args: &SetupArgs) -> CliResult {
    if args.json || !std::io::stdin().is_terminal() {
        return Err(CliError::usage("nothing was changed: cannot ask for confirmation")
            .because("stdin is not a terminal, or --json was given")
            .hint(yes_command(args))
            .hint("agtmux setup --dry-run   (prints the changes)"));
    }
    if input::confirm("Make these changes? (`agtmux setup --dry-run` shows each line)")? {
        return Ok(());
    }
    Err(CliError::failed("nothing was changed").because("you did not confirm"))
}

/// Takes the setup lock and applies the plans. Plans again first, because the files may have changed since the plans
/// were shown.
fn apply_plans(
    args: &SetupArgs,
    shown: &AgentPlans,
    mode: SetupMode,
    (paths, record): (&Paths, &Path),
    work_out: impl Fn(&SetupRecord) -> AgentPlans,
) -> CliResult<AgentPlans> {
    let _lock = SetupRecord::lock(paths).map_err(|error| CliError::io("lock the setup record", error))?;
    let mut record = SetupRecord::load(record.to_owned());
    let mut plans = work_out(&record);
    if !args.yes {
        let both = plans.into_iter().zip(shown);
        plans = both.map(|((agent, now), (_, shown))| (agent, plan::keep_agreed(shown, now))).collect();
    }
    remove_leftovers(&plans, mode, &mut record, paths);
    Ok(with_results(plans, |change| apply(change, &mut record, paths)))
}

/// Applies each planned change with `apply` and stores the result in the plan of the file.
fn with_results(mut plans: AgentPlans, mut apply: impl FnMut(&FileChange) -> FileResult) -> AgentPlans {
    for file in plans.iter_mut().flat_map(|(_, files)| files) {
        file.result = match &file.outcome {
            FileOutcome::Change(change) => apply(change),
            FileOutcome::Refused(why) => FileResult { error: Some(why.clone()), ..FileResult::default() },
            FileOutcome::Nothing => FileResult::default(),
        };
    }
    plans
}

/// Removes the temporary files of setups that were killed. Uninstall also forgets recorded files that no longer exist,
/// and removes the empty directories that setup created for them. The caller must hold the lock, because another setup
/// may be running.
fn remove_leftovers(plans: &AgentPlans, mode: SetupMode, record: &mut SetupRecord, paths: &Paths) {
    files::remove_drafts(&record.path);
    let targets = plans.iter().flat_map(|(_, files)| files).filter_map(|file| files::resolve_links(&file.path).ok());
    targets.for_each(|target| files::remove_drafts(&target));
    if mode == SetupMode::Uninstall {
        let gone: Vec<_> = plans.iter().flat_map(|(agent, _)| record.missing_files(agent.name)).collect();
        for (path, made_dirs) in &gone {
            files::remove_dirs(path, *made_dirs);
            record.set(path, None);
        }
        // If saving fails, the next run tries again.
        let _ = if gone.is_empty() { Ok(()) } else { record.save(paths) };
    }
}

/// Takes the setup lock and calls `remove_leftovers`. Errors are ignored: leftovers are harmless.
fn remove_leftovers_locked(plans: &AgentPlans, mode: SetupMode, paths: &Paths, record: &Path) {
    if paths.state_dir.is_dir()
        && let Ok(_lock) = SetupRecord::lock(paths)
    {
        remove_leftovers(plans, mode, &mut SetupRecord::load(record.to_owned()), paths);
    }
}

fn apply(change: &FileChange, record: &mut SetupRecord, paths: &Paths) -> FileResult {
    // Save the record before the file: a record without a file is harmless.
    if change.entry.is_some() {
        record.set(&change.target, change.entry.clone());
    }
    let written = record.save(paths).and_then(|()| files::replace(change));
    if written.is_ok() && change.entry.is_none() {
        record.set(&change.target, None);
        let _ = record.save(paths);
    }
    match written {
        Ok(backup) => FileResult { applied: true, backup, error: None },
        Err(error) => FileResult { error: Some(error.to_string()), ..FileResult::default() },
    }
}

fn print_results(reports: &AgentPlans, subject: SetupSubject, mode: SetupMode) -> CliResult {
    let mut lines = Vec::new();
    for (agent, files) in reports {
        for file in files {
            let (path, done) = (file.path.display(), &file.result);
            if let Some(error) = &done.error {
                CliMessage::new(format!("'{path}' was not changed")).because(error.clone()).print_stderr();
            } else if done.applied {
                let copy = done.backup.as_ref().map(|backup| format!(" (backup: {})", backup.display()));
                let verb = if file.is_removal() { "removed" } else { "wrote" };
                lines.push(format!("{verb} {path}{}", copy.unwrap_or_default()));
            }
        }
        if mode == SetupMode::Install && files.iter().any(|file| file.result.applied) {
            let next = if subject == SetupSubject::Hooks { &agent.setup.next } else { MCP_NEXT };
            lines.push(format!("{}: {next}", agent.setup.title));
        }
    }
    if mode == SetupMode::Install && subject == SetupSubject::Hooks {
        lines.push("Start an agent in tmux, then check its events: agtmux explain %0".into());
    }
    output::lines(lines)
}
