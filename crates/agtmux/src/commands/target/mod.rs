//! `agtmux target`: manages the watched hosts.

mod display;

use std::io::IsTerminal;

use agtmux_api::wire::{NewTarget, TargetCheckReport, TargetItem, TargetList};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::target::TargetKind;
use clap::{Args, Subcommand, ValueEnum};

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{input, output, render};

#[derive(Debug, Subcommand)]
pub(crate) enum TargetCommand {
    /// Add a host and connect to it
    Add(TargetAddArgs),
    /// Connect to a host now and print the result
    Connect(TargetNameArgs),
    /// List the watched hosts and their health
    List(TargetListArgs),
    /// Stop watching a host; nothing changes on the host itself
    Remove(TargetRemoveArgs),
    /// Check a host and print what to fix
    ///
    /// Exits with 1 if a check fails.
    Doctor(TargetNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TargetAddArgs {
    /// A name for the host: letters, digits, '.', '_' and '-'
    name: String,
    /// How agtmux reaches the host. You need not add this machine (local): it is always watched
    #[arg(long, default_value = "ssh")]
    kind: TargetKindArg,
    /// The destination for `ssh`, such as me@vm1 [default: NAME]
    #[arg(long, value_name = "HOST", allow_hyphen_values = true)]
    ssh_target: Option<String>,
    /// Print the result as JSON
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
    /// The name of the target
    name: String,
    /// Print the result as JSON
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
    /// The name of the target
    name: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the remaining targets as JSON
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

/// Prints the target. Fails if it is not connected; the daemon watches it anyway.
fn print_connect_result(answer: &[u8], json: bool) -> Result<CliExit, CliError> {
    let item: TargetItem = parse(answer)?;
    if json {
        output::line(answer)?;
    } else {
        output::lines(&display::target_lines(&item))?;
    }
    let status = item.status;
    let Some(why) = status.message else { return Ok(CliExit::Ok) };
    let message = CliMessage::new(format!("'{}' is not connected", status.name)).because(why);
    let message = message.because("the daemon keeps trying to connect");
    Err(CliError::failed(status.hint.into_iter().fold(message, CliMessage::hint)))
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
        output::line(format!("removed {}", args.name).as_bytes())?;
    }
    Ok(CliExit::Ok)
}

fn confirmed(name: &str) -> Result<bool, CliError> {
    let question = format!("stop watching {name}?");
    if !std::io::stdin().is_terminal() {
        let message = CliMessage::new(question).because("cannot ask for confirmation without a terminal");
        return Err(CliError::new(CliExit::Usage, message.hint(format!("agtmux target remove {name} --yes"))));
    }
    input::confirm(&question)
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

/// Rejects an invalid name before it becomes part of a path.
fn checked_name(name: &str) -> Result<&str, CliError> {
    if agtmux_core::target::is_target_name(name) {
        return Ok(name);
    }
    let message =
        CliMessage::new("invalid target name").because(agtmux_core::target::TargetNameError::Target.to_string());
    Err(CliError::new(CliExit::Usage, message.hint("agtmux target list")))
}
