//! `agtmux target`: manages the watched hosts.

mod display;

use agtmux_api::wire::{NewTarget, TargetCheckReport, TargetItem, TargetList};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::target::TargetKind;
use clap::{Args, Subcommand};

use crate::choices::one_of;
use crate::error::{CliError, CliExit, CliResult};
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
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
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
    /// How agtmux connects to the host
    #[arg(long, hide = true, default_value = "ssh", value_parser = one_of([("local", TargetKind::Local), ("ssh", TargetKind::Ssh)]))]
    kind: TargetKind,
    /// The destination for `ssh`, such as me@vm1 [default: NAME]
    #[arg(long, value_name = "HOST", allow_hyphen_values = true)]
    ssh_target: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
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

pub(crate) async fn run(command: TargetCommand) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    match command {
        TargetCommand::Add(args) => add(&daemon, args).await,
        TargetCommand::Connect(args) => {
            let path = format!("/v1/targets/{}/connect", checked_name(&args.name)?);
            print_connect_result(&daemon.act(&path, &()).await?, args.json)
        }
        TargetCommand::List { json } => list(&daemon, json).await,
        TargetCommand::Remove(args) => remove(&daemon, args).await,
        TargetCommand::Doctor(args) => doctor(&daemon, &args).await,
    }
}

async fn add(daemon: &DaemonClient, args: TargetAddArgs) -> CliResult {
    let new = NewTarget { name: args.name, kind: args.kind, ssh_target: args.ssh_target };
    print_connect_result(&daemon.act("/v1/targets", &new).await?, args.json)
}

/// Prints the target. Fails if the target is not connected. The daemon watches the target from now on in any case.
fn print_connect_result(answer: &[u8], json: bool) -> CliResult {
    let TargetItem { status, .. } = output::parsed_answer(answer, json, display::target_lines)?;
    let Some(why) = status.message else { return Ok(()) };
    let error = CliError::failed(format!("'{}' is not connected", status.name))
        .because(why)
        .because("the daemon keeps trying to connect");
    Err(status.hint.into_iter().fold(error, CliError::hint))
}

async fn list(daemon: &DaemonClient, json: bool) -> CliResult {
    let answer = daemon.get_bytes("/v1/targets", &()).await?;
    if json {
        return output::json_answer(&answer);
    }
    let targets: TargetList = parse(&answer)?;
    output::styled_lines(&render::targets(&targets).lines(&StdoutTerminal::detect()))?;
    display::advice(&targets).iter().for_each(CliMessage::print_stderr);
    Ok(())
}

async fn remove(daemon: &DaemonClient, args: TargetRemoveArgs) -> CliResult {
    let path = format!("/v1/targets/{}", checked_name(&args.name)?);
    if !args.yes {
        let question = format!("stop watching {}?", args.name);
        input::require_confirmation(&question, &format!("agtmux target remove {} --yes", args.name))?;
    }
    let answer = daemon.delete(&path).await?;
    if args.json { output::json_answer(&answer) } else { output::line(&format!("removed {}", args.name)) }
}

async fn doctor(daemon: &DaemonClient, args: &TargetNameArgs) -> CliResult {
    let path = format!("/v1/targets/{}/doctor", checked_name(&args.name)?);
    let answer = daemon.get_slow(&path).await?;
    let checkup: TargetCheckReport = output::parsed_answer(&answer, args.json, display::checkup_lines)?;
    let is_ok = checkup.checks.iter().all(|check| check.ok);
    if is_ok { Ok(()) } else { Err(CliError::silent(CliExit::Failed)) }
}

/// Rejects an invalid name before it becomes part of a path.
fn checked_name(name: &str) -> CliResult<&str> {
    if agtmux_core::target::is_target_name(name) {
        return Ok(name);
    }
    Err(CliError::usage("invalid target name")
        .because(agtmux_core::target::TargetNameError::Target.to_string())
        .hint("agtmux target list"))
}
