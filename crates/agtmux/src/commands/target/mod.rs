//! `agtmux target`: the hosts that are watched.

mod shown;

use std::io::{BufRead, IsTerminal, Write};

use agtmux_api::wire::{Checkup, NewTarget, TargetItem, Targets};
use agtmux_core::target::TargetKind;
use clap::{Args, Subcommand, ValueEnum};

use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::terminal::Terminal;
use crate::{output, render};

#[derive(Debug, Subcommand)]
pub(crate) enum TargetCommand {
    /// Watch another host from now on
    Add(AddArgs),
    /// Try to reach a host at once, and tell what came of it
    Connect(NameArgs),
    /// List the hosts that are watched, how they fare and what is known of them
    List(ListArgs),
    /// Watch a host no longer; nothing changes on the host itself
    Remove(RemoveArgs),
    /// Tell what a host has, what that means, and what to run
    Doctor(NameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What you want to call it: letters, digits, '.', '_' and '-'
    name: String,
    /// How it is reached
    #[arg(long, default_value = "ssh")]
    kind: KindName,
    /// The host, as you write it after `ssh`; the name when left out
    #[arg(long, value_name = "HOST", allow_hyphen_values = true)]
    ssh_target: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    Local,
    Ssh,
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    name: String,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    name: String,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print the targets that are left as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: TargetCommand) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    match command {
        TargetCommand::Add(args) => add(&daemon, args).await,
        TargetCommand::Connect(args) => {
            let path = format!("/v1/targets/{}/connect", segment(&args.name)?);
            reached(&daemon.act(&path, &()).await?, args.json)
        }
        TargetCommand::List(args) => list(&daemon, &args).await,
        TargetCommand::Remove(args) => remove(&daemon, args).await,
        TargetCommand::Doctor(args) => doctor(&daemon, &args).await,
    }
}

async fn add(daemon: &Daemon, args: AddArgs) -> Result<Exit, CliError> {
    let kind = match args.kind {
        KindName::Local => TargetKind::Local,
        KindName::Ssh => TargetKind::Ssh,
    };
    let new = NewTarget { name: args.name, kind, ssh_target: args.ssh_target };
    reached(&daemon.act("/v1/targets", &new).await?, args.json)
}

/// A host that does not answer is watched all the same, and that is told.
fn reached(answer: &[u8], json: bool) -> Result<Exit, CliError> {
    let item: TargetItem = parse(answer)?;
    if json {
        output::line(answer)?;
    } else {
        output::lines(&shown::one(&item))?;
    }
    let Some(why) = item.message else { return Ok(Exit::Ok) };
    let message = Message::new(format!("'{}' is not connected", item.name)).because(why);
    let message = message.because("it is tried again by itself");
    Err(CliError::failed(item.hint.into_iter().fold(message, Message::hint)))
}

async fn list(daemon: &Daemon, args: &ListArgs) -> Result<Exit, CliError> {
    let answer = daemon.bytes("/v1/targets", &()).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let targets: Targets = parse(&answer)?;
    output::lines(&render::targets(&targets).lines(&Terminal::of_stdout()))?;
    for message in shown::advice(&targets) {
        message.tell();
    }
    Ok(Exit::Ok)
}

async fn remove(daemon: &Daemon, args: RemoveArgs) -> Result<Exit, CliError> {
    let path = format!("/v1/targets/{}", segment(&args.name)?);
    if !args.yes && !confirmed(&args.name)? {
        return Ok(Exit::Failed);
    }
    let answer = daemon.delete(&path).await?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::line(format!("{} is watched no longer", args.name).as_bytes())?;
    }
    Ok(Exit::Ok)
}

fn confirmed(name: &str) -> Result<bool, CliError> {
    let asked = format!("watch {name} no longer?");
    if !std::io::stdin().is_terminal() {
        let message = Message::new(asked).because("nobody is there to confirm it");
        return Err(CliError::new(Exit::Usage, message.hint(format!("agtmux target remove {name} --yes"))));
    }
    eprint!("{} [y/N] ", agtmux_core::sanitize::for_terminal(&asked));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| CliError::io("read your answer", error))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

async fn doctor(daemon: &Daemon, args: &NameArgs) -> Result<Exit, CliError> {
    let path = format!("/v1/targets/{}/doctor", segment(&args.name)?);
    let answer = daemon.patiently(&path).await?;
    let checkup: Checkup = parse(&answer)?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::lines(&shown::checkup(&checkup))?;
    }
    Ok(if checkup.checks.iter().all(|check| check.ok) { Exit::Ok } else { Exit::Failed })
}

/// A name that no target can have is not asked for.
fn segment(name: &str) -> Result<&str, CliError> {
    if agtmux_core::target::is_target_name(name) {
        return Ok(name);
    }
    let message = Message::new("this is no name of a target").because(agtmux_core::target::BadName::Target.to_string());
    Err(CliError::new(Exit::Usage, message.hint("agtmux target list")))
}
