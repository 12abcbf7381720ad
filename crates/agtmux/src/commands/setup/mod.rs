//! `agtmux setup`: our hooks in the settings of agents, beside everything that is there, and out again.

mod agents;
mod command;
mod edit;
mod files;
mod plan;
mod record;
mod show;

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use agtmux_api::paths::Paths;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use agents::Agent;
use plan::{Aim, FilePlan, Outcome};
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
    let program = program()?;
    let (here, missing) = choose(args, aim)?;
    if here.is_empty() && aim == Aim::Install {
        return Err(nothing_here(&missing));
    }
    let plans: Vec<(&Agent, Vec<FilePlan>)> =
        here.iter().map(|(agent, dir)| (*agent, plan::plan(agent, dir, &program, aim, &record))).collect();
    let changes = plans.iter().flat_map(|(_, files)| files).filter(|f| matches!(f.outcome, Outcome::Change(_))).count();
    if !args.json {
        tell_plans(&plans, aim)?;
    }
    if changes > 0 && !args.dry_run && !args.yes && !agreed(args, aim)? {
        return Ok(Exit::Failed);
    }
    let reports = apply(plans, args.dry_run, record, &paths);
    let failed = reports.iter().flat_map(|(_, files)| files).any(|(_, done)| done.error.is_some());
    if args.json {
        output::line(show::document(&reports, &missing).to_string().as_bytes())?;
    } else if !args.dry_run && changes > 0 {
        tell_outcome(&reports, aim)?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

fn program() -> Result<String, CliError> {
    let path = command::own_path().map_err(|error| CliError::io("find the agtmux program", error))?;
    path.into_os_string().into_string().map_err(|path| {
        let path = path.display().to_string();
        CliError::failed(Message::new(format!("the path of agtmux is not UTF-8: {path}")))
    })
}

type Here = Vec<(&'static Agent, PathBuf)>;

/// Those that were asked for, or those that are here; and the names of those that are not.
fn choose(args: &SetupArgs, aim: Aim) -> Result<(Here, Vec<&'static str>), CliError> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    let asked: Vec<&Agent> = args.agent.iter().filter_map(|name| Agent::named(name)).collect();
    for agent in agents::ALL {
        if !asked.is_empty() && !asked.iter().any(|asked| asked.name == agent.name) {
            continue;
        }
        let dir = agent.dir(|name| std::env::var_os(name)).ok_or_else(no_home)?;
        let wanted = if aim == Aim::Uninstall { dir.is_dir() } else { agent.is_here(&dir) || !asked.is_empty() };
        if wanted { here.push((agent, dir)) } else { missing.push(agent.name) }
    }
    Ok((here, missing))
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

fn tell_plans(plans: &[(&Agent, Vec<FilePlan>)], aim: Aim) -> Result<(), CliError> {
    let nothing = if aim == Aim::Install { "nothing to do" } else { "nothing of ours in it" };
    for (agent, files) in plans {
        output::lines(&show::lines(agent, files, nothing))?;
    }
    Ok(())
}

/// Asks on the terminal. Where there is none, nobody can have agreed.
fn agreed(args: &SetupArgs, aim: Aim) -> Result<bool, CliError> {
    if args.json || !std::io::stdin().is_terminal() {
        let message = Message::new("nothing was changed, because nobody can be asked here")
            .because("there is no terminal on stdin, or JSON was asked for")
            .hint(format!("agtmux setup{} --yes", if aim == Aim::Uninstall { " --uninstall" } else { "" }))
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

fn apply(plans: Vec<(&'static Agent, Vec<FilePlan>)>, dry_run: bool, mut record: Record, paths: &Paths) -> Reports {
    let mut one = |file: FilePlan| {
        let done = match &file.outcome {
            Outcome::Nothing => Done::default(),
            Outcome::Refused(why) => Done { error: Some(why.clone()), ..Done::default() },
            Outcome::Change(_) if dry_run => Done::default(),
            Outcome::Change(change) => {
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
        };
        (file, done)
    };
    plans.into_iter().map(|(agent, files)| (agent, files.into_iter().map(&mut one).collect())).collect()
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
