//! `agtmux target`: the hosts that are watched.

mod display;

use std::io::{BufRead, IsTerminal, Write};

use agtmux_api::wire::{NewTarget, TargetCheckReport, TargetItem, TargetList};
use agtmux_core::target::TargetKind;
use clap::{Args, Subcommand, ValueEnum};

use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

#[derive(Debug, Subcommand)]
pub(crate) enum TargetCommand {
    /// Watch another host from now on
    Add(TargetAddArgs),
    /// Try to reach a host at once, and tell what came of it
    Connect(TargetNameArgs),
    /// List the hosts that are watched, how they fare and what is known of them
    List(TargetListArgs),
    /// Watch a host no longer; nothing changes on the host itself
    Remove(TargetRemoveArgs),
    /// Tell what a host has, what that means, and what to run
    Doctor(TargetNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TargetAddArgs {
    /// What you want to call it: letters, digits, '.', '_' and '-'
    name: String,
    /// How it is reached
    #[arg(long, default_value = "ssh")]
    kind: TargetKindArg,
    /// The host, as you write it after `ssh`; the name when left out
    #[arg(long, value_name = "HOST", allow_hyphen_values = true)]
    ssh_target: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TargetKindArg {
    Local,
    Ssh,
}

#[derive(Debug, Args)]
pub(crate) struct TargetNameArgs {
    name: String,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TargetListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TargetRemoveArgs {
    name: String,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print the targets that are left as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: TargetCommand) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    match command {
        TargetCommand::Add(args) => add(&daemon, args).await,
        TargetCommand::Connect(args) => {
            let path = format!("/v1/targets/{}/connect", checked_name(&args.name)?);
            print_connect_result(&daemon.act(&path, &()).await?, args.json)
        }
        TargetCommand::List(args) => list(&daemon, &args).await,
        TargetCommand::Remove(args) => remove(&daemon, args).await,
        TargetCommand::Doctor(args) => doctor(&daemon, &args).await,
    }
}

async fn add(daemon: &DaemonClient, args: TargetAddArgs) -> Result<CliExit, CliError> {
    let kind = match args.kind {
        TargetKindArg::Local => TargetKind::Local,
        TargetKindArg::Ssh => TargetKind::Ssh,
    };
    let new = NewTarget { name: args.name, kind, ssh_target: args.ssh_target };
    print_connect_result(&daemon.act("/v1/targets", &new).await?, args.json)
}

/// A host that does not answer is watched all the same, and that is told.
fn print_connect_result(answer: &[u8], json: bool) -> Result<CliExit, CliError> {
    let item: TargetItem = parse(answer)?;
    if json {
        output::line(answer)?;
    } else {
        output::lines(&display::target_lines(&item))?;
    }
    let Some(why) = item.message else { return Ok(CliExit::Ok) };
    let message = CliMessage::new(format!("'{}' is not connected", item.name)).because(why);
    let message = message.because("it is tried again by itself");
    Err(CliError::failed(item.hint.into_iter().fold(message, CliMessage::hint)))
}

async fn list(daemon: &DaemonClient, args: &TargetListArgs) -> Result<CliExit, CliError> {
    let answer = daemon.get_bytes("/v1/targets", &()).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let targets: TargetList = parse(&answer)?;
    output::lines(&render::targets(&targets).lines(&StdoutTerminal::detect()))?;
    for message in display::advice(&targets) {
        message.print_stderr();
    }
    Ok(CliExit::Ok)
}

async fn remove(daemon: &DaemonClient, args: TargetRemoveArgs) -> Result<CliExit, CliError> {
    let path = format!("/v1/targets/{}", checked_name(&args.name)?);
    if !args.yes && !confirmed(&args.name)? {
        return Ok(CliExit::Failed);
    }
    let answer = daemon.delete(&path).await?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::line(format!("{} is watched no longer", args.name).as_bytes())?;
    }
    Ok(CliExit::Ok)
}

fn confirmed(name: &str) -> Result<bool, CliError> {
    let asked = format!("watch {name} no longer?");
    if !std::io::stdin().is_terminal() {
        let message = CliMessage::new(asked).because("nobody is there to confirm it");
        return Err(CliError::new(CliExit::Usage, message.hint(format!("agtmux target remove {name} --yes"))));
    }
    eprint!("{} [y/N] ", agtmux_core::sanitize::for_terminal(&asked));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| CliError::io("read your answer", error))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

async fn doctor(daemon: &DaemonClient, args: &TargetNameArgs) -> Result<CliExit, CliError> {
    let path = format!("/v1/targets/{}/doctor", checked_name(&args.name)?);
    let answer = daemon.get_slow(&path).await?;
    let checkup: TargetCheckReport = parse(&answer)?;
    if args.json {
        output::line(&answer)?;
    } else {
        output::lines(&display::checkup_lines(&checkup))?;
    }
    Ok(if checkup.checks.iter().all(|check| check.ok) { CliExit::Ok } else { CliExit::Failed })
}

/// A name that no target can have is not asked for.
fn checked_name(name: &str) -> Result<&str, CliError> {
    if agtmux_core::target::is_target_name(name) {
        return Ok(name);
    }
    let message = CliMessage::new("this is no name of a target")
        .because(agtmux_core::target::TargetNameError::Target.to_string());
    Err(CliError::new(CliExit::Usage, message.hint("agtmux target list")))
}
