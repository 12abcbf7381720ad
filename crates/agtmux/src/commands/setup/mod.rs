//! `agtmux setup`: our hooks in the settings of agents, beside everything that is there, and out again.

mod agents;
mod command;
mod edit;
mod files;
mod plan;
mod record;
mod show;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use agents::Agent;
use plan::{Aim, Change, FilePlan, Outcome};
use record::Record;
use show::Done;

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

pub(crate) fn run(args: &SetupArgs) -> Result<Exit, CliError> {
    let aim = if args.uninstall { Aim::Uninstall } else { Aim::Install };
    let paths = Paths::from_env()?;
    let record = Record::load(&paths);
    let program = program(aim)?;
    let (here, missing) = choose(args, aim, &record)?;
    if here.is_empty() && aim == Aim::Install {
        return Err(nothing_here(&missing));
    }
    let work_out = |record: &Record| -> Plans {
        here.iter().map(|(agent, dir)| (*agent, plan::plan(agent, dir, &program, aim, record))).collect()
    };
    let plans = work_out(&record);
    let changes = plans.iter().flat_map(|(_, files)| files).filter(|file| file.is_change()).count();
    let told = if args.json { Ok(()) } else { tell_plans(&plans, aim) };
    if changes > 0 && !args.dry_run && !args.yes {
        told.as_ref().map_err(|_| not_shown(aim))?;
        if !agreed(args, aim)? {
            return Ok(Exit::Failed);
        }
    }
    let reports = if args.dry_run {
        plans.into_iter().map(left_alone).collect()
    } else if changes == 0 {
        clear_up_alone(&plans, aim, &paths);
        plans.into_iter().map(left_alone).collect()
    } else {
        carry_out(args, &plans, aim, &paths, work_out)?
    };
    let ended = if args.json {
        output::line(show::document(&reports, &missing).to_string().as_bytes())
    } else if !args.dry_run && changes > 0 {
        tell_outcome(&reports, aim)
    } else {
        Ok(())
    };
    // Whoever does not read what is said is still told by the exit code.
    let failed = reports.iter().flat_map(|(_, files)| files).any(|(_, done)| done.error.is_some());
    if failed { Ok(Exit::Failed) } else { told.and(ended).map(|()| Exit::Ok) }
}

/// What entries are to call. Those that call something else could not be found again.
fn program(aim: Aim) -> Result<String, CliError> {
    let path = command::own_path().map_err(|error| CliError::io("find the agtmux program", error))?;
    if let Some(message) = command::misnamed(&path).filter(|_| aim == Aim::Install) {
        return Err(CliError::failed(message));
    }
    path.into_os_string().into_string().map_err(|path| {
        let path = path.display().to_string();
        CliError::failed(Message::new(format!("the path of agtmux is not UTF-8: {path}")))
    })
}

type Plans = Vec<(&'static Agent, Vec<FilePlan>)>;
type Here = Vec<(&'static Agent, PathBuf)>;

/// Those that were asked for, or those that are here; and the names of those that are not.
fn choose(args: &SetupArgs, aim: Aim, record: &Record) -> Result<(Here, Vec<&'static str>), CliError> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    let asked: Vec<&Agent> = args.agent.iter().filter_map(|name| Agent::named(name)).collect();
    for agent in agents::ALL {
        if !asked.is_empty() && !asked.iter().any(|asked| asked.name == agent.name) {
            continue;
        }
        let dir = agent.dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
        let wanted = match aim {
            Aim::Uninstall => dir.is_dir() || record.files_of(agent.name).next().is_some(),
            Aim::Install => agent.is_here(&dir) || !asked.is_empty(),
        };
        if !wanted {
            missing.push(agent.name);
            continue;
        }
        if let Some((variable, value)) = agent.ignored(|name| std::env::var_os(name)) {
            tell_ignored(variable, &value, &dir);
        }
        here.push((agent, dir));
    }
    Ok((here, missing))
}

fn tell_ignored(variable: &str, value: &Path, used: &Path) {
    Message::new(format!("{variable} is ignored, because '{}' is no absolute path", value.display()))
        .because(format!("the settings in '{}' are used instead", used.display()))
        .hint(format!("{variable}=\"$PWD/{}\" agtmux setup", value.display()))
        .tell();
}

fn no_home() -> CliError {
    CliError::new(Exit::Usage, Message::new("HOME is not set, so no settings of agents can be found"))
}

fn nothing_here(missing: &[&str]) -> CliError {
    let message = Message::new("no agent was found here")
        .because(format!("looked for the programs and the settings of: {}", missing.join(", ")))
        .hint("agtmux setup --agent claude   (before it is installed)");
    CliError::failed(message)
}

fn tell_plans(plans: &Plans, aim: Aim) -> Result<(), CliError> {
    let nothing = if aim == Aim::Install { "nothing to do" } else { "nothing of ours in it" };
    for (agent, files) in plans {
        output::lines(&show::lines(agent, files, nothing))?;
    }
    Ok(())
}

fn not_shown(aim: Aim) -> CliError {
    let message = Message::new("nothing was changed, because the changes could not be shown")
        .because("stdout is closed, or whoever read it has gone")
        .hint(format!("{}   (without being asked)", without_asking(aim)));
    CliError::failed(message)
}

fn without_asking(aim: Aim) -> String {
    format!("agtmux setup{} --yes", if aim == Aim::Uninstall { " --uninstall" } else { "" })
}

/// Asks on the terminal. Where there is none, nobody can have agreed.
fn agreed(args: &SetupArgs, aim: Aim) -> Result<bool, CliError> {
    if args.json || !std::io::stdin().is_terminal() {
        let message = Message::new("nothing was changed, because nobody can be asked here")
            .because("there is no terminal on stdin, or JSON was asked for")
            .hint(without_asking(aim))
            .hint("agtmux setup --dry-run   (to see the changes only)");
        return Err(CliError::new(Exit::Usage, message));
    }
    let mut answer = String::new();
    let asked = write!(std::io::stderr(), "Make these changes? [y/N] ").and_then(|()| std::io::stderr().flush());
    asked.map_err(|error| CliError::io("ask", error))?;
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| CliError::io("read the answer", error))?;
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        Message::new("nothing was changed").tell();
    }
    Ok(yes)
}

type Reports = Vec<(&'static Agent, Vec<(FilePlan, Done)>)>;

/// While no other setup is at work. What was shown may be out of date by then, so everything is looked at again.
fn carry_out(
    args: &SetupArgs,
    shown: &Plans,
    aim: Aim,
    paths: &Paths,
    work_out: impl Fn(&Record) -> Plans,
) -> Result<Reports, CliError> {
    let _lock = Record::lock(paths).map_err(|error| CliError::io("keep other setups waiting", error))?;
    let mut record = Record::load(paths);
    let mut plans = work_out(&record);
    if !args.yes {
        let both = plans.into_iter().zip(shown);
        plans = both.map(|((agent, now), (_, shown))| (agent, plan::agreed(shown, now))).collect();
    }
    clear_up(&plans, aim, &mut record, paths);
    let mut one = |file: FilePlan| match &file.outcome {
        Outcome::Change(change) => {
            let done = apply(change, &mut record, paths);
            (file, done)
        }
        _ => untouched(file),
    };
    Ok(plans.into_iter().map(|(agent, files)| (agent, files.into_iter().map(&mut one).collect())).collect())
}

/// What setups that were killed have left. Not without the lock: others may be in the middle of it.
fn clear_up(plans: &Plans, aim: Aim, record: &mut Record, paths: &Paths) {
    files::clear_drafts(&paths.setup_record());
    let targets = plans.iter().flat_map(|(_, files)| files).filter_map(|file| files::target_of(&file.path).ok());
    targets.for_each(|target| files::clear_drafts(&target));
    if aim == Aim::Uninstall {
        let gone: Vec<_> = plans.iter().flat_map(|(agent, _)| record.gone(agent.name)).collect();
        for (path, made_dirs) in &gone {
            files::remove_dirs(path, *made_dirs);
            record.set(path, None);
        }
        // What cannot be saved is tried again at the next time.
        let _ = if gone.is_empty() { Ok(()) } else { record.save(paths) };
    }
}

/// The same where there is nothing else to do. What cannot be cleared does no harm.
fn clear_up_alone(plans: &Plans, aim: Aim, paths: &Paths) {
    if paths.state_dir.is_dir()
        && let Ok(_lock) = Record::lock(paths)
    {
        clear_up(plans, aim, &mut Record::load(paths), paths);
    }
}

fn left_alone((agent, files): (&'static Agent, Vec<FilePlan>)) -> (&'static Agent, Vec<(FilePlan, Done)>) {
    (agent, files.into_iter().map(untouched).collect())
}

fn untouched(file: FilePlan) -> (FilePlan, Done) {
    let error = if let Outcome::Refused(why) = &file.outcome { Some(why.clone()) } else { None };
    (file, Done { error, ..Done::default() })
}

fn apply(change: &Change, record: &mut Record, paths: &Paths) -> Done {
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
        Ok(backup) => Done { applied: true, backup, error: None },
        Err(error) => Done { error: Some(error.to_string()), ..Done::default() },
    }
}

fn tell_outcome(reports: &Reports, aim: Aim) -> Result<(), CliError> {
    let mut lines = Vec::new();
    for (agent, files) in reports {
        for (plan, done) in files {
            let path = plan.path.display();
            if let Some(error) = &done.error {
                Message::new(format!("'{path}' was left as it is")).because(error.clone()).tell();
            } else if done.applied {
                let copy = done.backup.as_ref().map(|backup| format!(" (before: {})", backup.display()));
                let verb = if plan.is_removal() { "removed" } else { "wrote" };
                lines.push(format!("{verb} {path}{}", copy.unwrap_or_default()));
            }
        }
        if aim == Aim::Install && files.iter().any(|(_, done)| done.applied) {
            lines.push(format!("{}: {}", agent.title, agent.next));
        }
    }
    if aim == Aim::Install {
        lines.push("Start an agent in tmux and see what it says of itself: agtmux explain %0".into());
    }
    output::lines(&lines.iter().map(|line| agtmux_core::sanitize::for_terminal(line)).collect::<Vec<_>>())
}
