//! `agtmux adapters`: which agents are understood, and how well; and how to add one.

pub(crate) mod check;
mod new;
mod record;

use agtmux_api::wire::{AdapterSwitch, Adapters};
use clap::{Args, Subcommand};

use crate::commands::block_on;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::terminal::Terminal;
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
    Enable(Named),
    /// Read nothing that agents of this kind say or show; they are still listed, as unknown
    Disable(Named),
    /// Check a manifest of your own: exit 0 with what it amounts to, 2 with the line and the reason when it is faulty
    Check(check::CheckArgs),
    /// Write a commented start for an agent of your own beside your settings
    New(new::NewArgs),
    /// Save what an agent shows and says, without secrets, for a bug report or to try rules on
    Record(record::RecordArgs),
}

#[derive(Debug, Args)]
struct Named {
    /// The kind of agent, as `agtmux adapters` lists it
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: AdaptersArgs) -> Result<Exit, CliError> {
    match args.command {
        None => block_on(list(args.json)),
        Some(AdaptersCommand::Enable(named)) => block_on(switch(named, true)),
        Some(AdaptersCommand::Disable(named)) => block_on(switch(named, false)),
        Some(AdaptersCommand::Check(args)) => check::run(&args),
        Some(AdaptersCommand::New(args)) => new::run(&args),
        Some(AdaptersCommand::Record(args)) => block_on(record::run(args)),
    }
}

async fn list(json: bool) -> Result<Exit, CliError> {
    let answer = Daemon::from_env()?.bytes("/v1/adapters", &()).await?;
    if json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let adapters: Adapters = parse(&answer)?;
    output::lines(&render::adapters(&adapters).lines(&Terminal::of_stdout()))?;
    render::faults(&adapters).iter().for_each(Message::tell);
    Ok(Exit::Ok)
}

async fn switch(Named { name, json }: Named, enabled: bool) -> Result<Exit, CliError> {
    let body = serde_json::to_vec(&AdapterSwitch { name: name.clone(), enabled });
    let body = body.map_err(|error| CliError::io("write JSON", error))?;
    let answer = Daemon::from_env()?.post("/v1/adapters", body.into()).await?;
    if json {
        output::line(&answer)?;
    } else {
        let done = format!("the adapter '{name}' is switched {}", if enabled { "on" } else { "off" });
        Message::new(done).hint("agtmux adapters").tell();
    }
    Ok(Exit::Ok)
}
