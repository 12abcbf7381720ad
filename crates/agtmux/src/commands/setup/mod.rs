//! `agtmux setup`: our hooks in the settings of agents, beside everything that is there, and out again.

mod agents;
mod command;
mod edit;
mod files;
mod plan;
mod record;
mod report;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;
use agents::SetupAgent;
use plan::{FileChange, FileOutcome, FilePlan, SetupMode};
use record::SetupRecord;
use report::FileResult;

#[derive(Debug, Args)]
#[command(
    after_help = "Every other byte of a settings file stays as it is, and a copy of the old file stays beside it. \
    What is there already is left alone, so it can be run again at any time; after an update of agtmux that moved it, \
    it corrects the path. Exits with 1 when a file was refused, or when the answer was no."
)]
pub(crate) struct SetupArgs {
    /// Only this agent; may be given several times. All that are found when left out
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(agents::ALL.map(|agent| agent.name)))]
    agent: Vec<String>,
    /// Show what would change and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Take out what was put in
    #[arg(long)]
    uninstall: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SetupArgs) -> Result<CliExit, CliError> {
    let aim = if args.uninstall { SetupMode::Uninstall } else { SetupMode::Install };
    let paths = Paths::from_env()?;
    let record = SetupRecord::load(&paths);
    let program = program(aim)?;
    let (here, missing) = select_agents(args, aim, &record)?;
    if here.is_empty() && aim == SetupMode::Install {
        return Err(no_agents_found(&missing));
    }
    let work_out = |record: &SetupRecord| -> AgentPlans {
        here.iter().map(|(agent, dir)| (*agent, plan::plan(agent, dir, &program, aim, record))).collect()
    };
    let plans = work_out(&record);
    let changes = plans.iter().flat_map(|(_, files)| files).filter(|file| file.is_change()).count();
    let told = if args.json { Ok(()) } else { print_plans(&plans, aim) };
    if changes > 0 && !args.dry_run && !args.yes {
        told.as_ref().map_err(|_| plans_not_printed(aim))?;
        if !confirm(args, aim)? {
            return Ok(CliExit::Failed);
        }
    }
    let reports = if args.dry_run {
        plans.into_iter().map(unchanged_agent).collect()
    } else if changes == 0 {
        remove_leftovers_locked(&plans, aim, &paths);
        plans.into_iter().map(unchanged_agent).collect()
    } else {
        apply_plans(args, &plans, aim, &paths, work_out)?
    };
    let ended = if args.json {
        output::line(report::document(&reports, &missing).to_string().as_bytes())
    } else if !args.dry_run && changes > 0 {
        print_results(&reports, aim)
    } else {
        Ok(())
    };
    // Whoever does not read what is said is still told by the exit code.
    let failed = reports.iter().flat_map(|(_, files)| files).any(|(_, done)| done.error.is_some());
    if failed { Ok(CliExit::Failed) } else { told.and(ended).map(|()| CliExit::Ok) }
}

/// What entries are to call. Those that call something else could not be found again.
fn program(aim: SetupMode) -> Result<String, CliError> {
    let path = command::own_path().map_err(|error| CliError::io("find the agtmux program", error))?;
    if let Some(message) = command::name_problem(&path).filter(|_| aim == SetupMode::Install) {
        return Err(CliError::failed(message));
    }
    path.into_os_string().into_string().map_err(|path| {
        let path = path.display().to_string();
        CliError::failed(CliMessage::new(format!("the path of agtmux is not UTF-8: {path}")))
    })
}

type AgentPlans = Vec<(&'static SetupAgent, Vec<FilePlan>)>;
type FoundAgents = Vec<(&'static SetupAgent, PathBuf)>;

/// Those that were asked for, or those that are here; and the names of those that are not.
fn select_agents(
    args: &SetupArgs,
    aim: SetupMode,
    record: &SetupRecord,
) -> Result<(FoundAgents, Vec<&'static str>), CliError> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    let asked: Vec<&SetupAgent> = args.agent.iter().filter_map(|name| SetupAgent::named(name)).collect();
    for agent in agents::ALL {
        if !asked.is_empty() && !asked.iter().any(|asked| asked.name == agent.name) {
            continue;
        }
        let dir = agent.dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
        let wanted = match aim {
            SetupMode::Uninstall => dir.is_dir() || record.files_of(agent.name).next().is_some(),
            SetupMode::Install => agent.is_installed(&dir) || !asked.is_empty(),
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
    CliMessage::new(format!("{variable} is ignored, because '{}' is no absolute path", value.display()))
        .because(format!("the settings in '{}' are used instead", used.display()))
        .hint(format!("{variable}=\"$PWD/{}\" agtmux setup", value.display()))
        .print_stderr();
}

fn no_home() -> CliError {
    CliError::new(CliExit::Usage, CliMessage::new("HOME is not set, so no settings of agents can be found"))
}

fn no_agents_found(missing: &[&str]) -> CliError {
    let message = CliMessage::new("no agent was found here")
        .because(format!("looked for the programs and the settings of: {}", missing.join(", ")))
        .hint("agtmux setup --agent claude   (before it is installed)");
    CliError::failed(message)
}

fn print_plans(plans: &AgentPlans, aim: SetupMode) -> Result<(), CliError> {
    let nothing = if aim == SetupMode::Install { "nothing to do" } else { "nothing of ours in it" };
    for (agent, files) in plans {
        output::lines(&report::lines(agent, files, nothing))?;
    }
    Ok(())
}

fn plans_not_printed(aim: SetupMode) -> CliError {
    let message = CliMessage::new("nothing was changed, because the changes could not be shown")
        .because("stdout is closed, or whoever read it has gone")
        .hint(format!("{}   (without being asked)", yes_command(aim)));
    CliError::failed(message)
}

fn yes_command(aim: SetupMode) -> String {
    format!("agtmux setup{} --yes", if aim == SetupMode::Uninstall { " --uninstall" } else { "" })
}

/// Asks on the terminal. Where there is none, nobody can have agreed.
fn confirm(args: &SetupArgs, aim: SetupMode) -> Result<bool, CliError> {
    if args.json || !std::io::stdin().is_terminal() {
        let message = CliMessage::new("nothing was changed, because nobody can be asked here")
            .because("there is no terminal on stdin, or JSON was asked for")
            .hint(yes_command(aim))
            .hint("agtmux setup --dry-run   (to see the changes only)");
        return Err(CliError::new(CliExit::Usage, message));
    }
    let mut answer = String::new();
    let asked = write!(std::io::stderr(), "Make these changes? [y/N] ").and_then(|()| std::io::stderr().flush());
    asked.map_err(|error| CliError::io("ask", error))?;
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| CliError::io("read the answer", error))?;
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        CliMessage::new("nothing was changed").print_stderr();
    }
    Ok(yes)
}

type AgentReports = Vec<(&'static SetupAgent, Vec<(FilePlan, FileResult)>)>;

/// While no other setup is at work. What was shown may be out of date by then, so everything is looked at again.
fn apply_plans(
    args: &SetupArgs,
    shown: &AgentPlans,
    aim: SetupMode,
    paths: &Paths,
    work_out: impl Fn(&SetupRecord) -> AgentPlans,
) -> Result<AgentReports, CliError> {
    let _lock = SetupRecord::lock(paths).map_err(|error| CliError::io("keep other setups waiting", error))?;
    let mut record = SetupRecord::load(paths);
    let mut plans = work_out(&record);
    if !args.yes {
        let both = plans.into_iter().zip(shown);
        plans = both.map(|((agent, now), (_, shown))| (agent, plan::keep_agreed(shown, now))).collect();
    }
    remove_leftovers(&plans, aim, &mut record, paths);
    let mut one = |file: FilePlan| match &file.outcome {
        FileOutcome::Change(change) => {
            let done = apply(change, &mut record, paths);
            (file, done)
        }
        _ => unchanged_file(file),
    };
    Ok(plans.into_iter().map(|(agent, files)| (agent, files.into_iter().map(&mut one).collect())).collect())
}

/// What setups that were killed have left. Not without the lock: others may be in the middle of it.
fn remove_leftovers(plans: &AgentPlans, aim: SetupMode, record: &mut SetupRecord, paths: &Paths) {
    files::remove_drafts(&paths.setup_record());
    let targets = plans.iter().flat_map(|(_, files)| files).filter_map(|file| files::resolve_links(&file.path).ok());
    targets.for_each(|target| files::remove_drafts(&target));
    if aim == SetupMode::Uninstall {
        let gone: Vec<_> = plans.iter().flat_map(|(agent, _)| record.missing_files(agent.name)).collect();
        for (path, made_dirs) in &gone {
            files::remove_dirs(path, *made_dirs);
            record.set(path, None);
        }
        // What cannot be saved is tried again at the next time.
        let _ = if gone.is_empty() { Ok(()) } else { record.save(paths) };
    }
}

/// The same where there is nothing else to do. What cannot be cleared does no harm.
fn remove_leftovers_locked(plans: &AgentPlans, aim: SetupMode, paths: &Paths) {
    if paths.state_dir.is_dir()
        && let Ok(_lock) = SetupRecord::lock(paths)
    {
        remove_leftovers(plans, aim, &mut SetupRecord::load(paths), paths);
    }
}

fn unchanged_agent(
    (agent, files): (&'static SetupAgent, Vec<FilePlan>),
) -> (&'static SetupAgent, Vec<(FilePlan, FileResult)>) {
    (agent, files.into_iter().map(unchanged_file).collect())
}

fn unchanged_file(file: FilePlan) -> (FilePlan, FileResult) {
    let error = if let FileOutcome::Refused(why) = &file.outcome { Some(why.clone()) } else { None };
    (file, FileResult { error, ..FileResult::default() })
}

fn apply(change: &FileChange, record: &mut SetupRecord, paths: &Paths) -> FileResult {
    // Before the file: a record of what is not there does no harm.
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

fn print_results(reports: &AgentReports, aim: SetupMode) -> Result<(), CliError> {
    let mut lines = Vec::new();
    for (agent, files) in reports {
        for (plan, done) in files {
            let path = plan.path.display();
            if let Some(error) = &done.error {
                CliMessage::new(format!("'{path}' was left as it is")).because(error.clone()).print_stderr();
            } else if done.applied {
                let copy = done.backup.as_ref().map(|backup| format!(" (before: {})", backup.display()));
                let verb = if plan.is_removal() { "removed" } else { "wrote" };
                lines.push(format!("{verb} {path}{}", copy.unwrap_or_default()));
            }
        }
        if aim == SetupMode::Install && files.iter().any(|(_, done)| done.applied) {
            lines.push(format!("{}: {}", agent.title, agent.next));
        }
    }
    if aim == SetupMode::Install {
        lines.push("Start an agent in tmux and see what it says of itself: agtmux explain %0".into());
    }
    output::lines(&lines.iter().map(|line| agtmux_core::sanitize::for_terminal(line)).collect::<Vec<_>>())
}
