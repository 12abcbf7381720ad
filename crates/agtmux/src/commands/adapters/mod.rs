//! `agtmux adapters`: which agents are understood, and how well; and how to add one.

pub(crate) mod check;
mod new;
mod record;

use agtmux_api::wire::{AdapterList, AdapterSwitch};
use clap::{Args, Subcommand};

use crate::commands::block_on;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AdaptersArgs {
    #[command(subcommand)]
    command: Option<AdaptersCommand>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AdaptersCommand {
    /// Read again what agents of this kind say and show
    Enable(AdapterNameArgs),
    /// Read nothing that agents of this kind say or show; they are still listed, as unknown
    Disable(AdapterNameArgs),
    /// Check a manifest of your own: exit 0 with what it amounts to, 2 with the line and the reason when it is faulty
    Check(check::AdapterCheckArgs),
    /// Write a commented start for an agent of your own beside your settings
    New(new::AdapterNewArgs),
    /// Save what an agent shows and says, without secrets, for a bug report or to try rules on
    Record(record::AdapterRecordArgs),
}

#[derive(Debug, Args)]
struct AdapterNameArgs {
    /// The kind of agent, as `agtmux adapters` lists it
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: AdaptersArgs) -> Result<CliExit, CliError> {
    match args.command {
        None => block_on(list(args.json)),
        Some(AdaptersCommand::Enable(named)) => block_on(switch(named, true)),
        Some(AdaptersCommand::Disable(named)) => block_on(switch(named, false)),
        Some(AdaptersCommand::Check(args)) => check::run(&args),
        Some(AdaptersCommand::New(args)) => new::run(&args),
        Some(AdaptersCommand::Record(args)) => block_on(record::run(args)),
    }
}

async fn list(json: bool) -> Result<CliExit, CliError> {
    let answer = DaemonClient::from_env()?.get_bytes("/v1/adapters", &()).await?;
    if json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let adapters: AdapterList = parse(&answer)?;
    output::lines(&render::adapters(&adapters).lines(&StdoutTerminal::detect()))?;
    render::adapter_faults(&adapters).iter().for_each(CliMessage::print_stderr);
    Ok(CliExit::Ok)
}

async fn switch(AdapterNameArgs { name, json }: AdapterNameArgs, enabled: bool) -> Result<CliExit, CliError> {
    let body = serde_json::to_vec(&AdapterSwitch { name: name.clone(), enabled });
    let body = body.map_err(|error| CliError::io("write JSON", error))?;
    let answer = DaemonClient::from_env()?.post("/v1/adapters", body.into()).await?;
    if json {
        output::line(&answer)?;
    } else {
        let done = format!("the adapter '{name}' is switched {}", if enabled { "on" } else { "off" });
        CliMessage::new(done).hint("agtmux adapters").print_stderr();
    }
    Ok(CliExit::Ok)
}
