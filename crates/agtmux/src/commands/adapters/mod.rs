//! `agtmux adapters`: lists the supported agents and manages adapters.

pub(crate) mod check;
mod new;
mod record;

use agtmux_api::wire::{AdapterList, AdapterSwitch};
use agtmux_client::{DaemonClient, parse};
use clap::{Args, Subcommand};

use crate::commands::block_on;
use crate::error::{CliError, CliResult};
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
    /// Enable an adapter, so that agtmux detects the states of agents of this type again
    Enable(AdapterNameArgs),
    /// Disable an adapter: agtmux no longer detects the states of agents of this type
    ///
    /// agtmux ignores the events and screens of agents of this type. These agents are still listed, with state unknown.
    Disable(AdapterNameArgs),
    /// Check a manifest of your own (the TOML file that describes an agent)
    ///
    /// Exits with 0 and prints a summary if the manifest is valid. Otherwise exits with 2 and prints the line of the
    /// error and the reason.
    Check(check::AdapterCheckArgs),
    /// Create a commented manifest for an agent of your own
    New(new::AdapterNewArgs),
    /// Save an agent's screen and events, with secrets removed
    ///
    /// Use the files in a bug report, or to test the rules of a manifest.
    Record(record::AdapterRecordArgs),
}

#[derive(Debug, Args)]
struct AdapterNameArgs {
    /// The type of the agent, as listed by `agtmux adapters`
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: AdaptersArgs) -> CliResult {
    match args.command {
        None => block_on(list(args.json)),
        Some(AdaptersCommand::Enable(named)) => block_on(switch(named, true)),
        Some(AdaptersCommand::Disable(named)) => block_on(switch(named, false)),
        Some(AdaptersCommand::Check(args)) => check::run(&args),
        Some(AdaptersCommand::New(args)) => new::run(&args),
        Some(AdaptersCommand::Record(args)) => block_on(record::run(args)),
    }
}

async fn list(json: bool) -> CliResult {
    let answer = DaemonClient::from_env()?.get_bytes("/v1/adapters", &()).await?;
    if json {
        return output::json_answer(&answer);
    }
    let adapters: AdapterList = parse(&answer)?;
    output::styled_lines(&render::adapters(&adapters).lines(&StdoutTerminal::detect()))?;
    render::adapter_faults(&adapters).iter().for_each(CliMessage::print_stderr);
    Ok(())
}

async fn switch(AdapterNameArgs { name, json }: AdapterNameArgs, enabled: bool) -> CliResult {
    let body = serde_json::to_vec(&AdapterSwitch { name: name.clone(), enabled });
    let body = body.map_err(|error| CliError::io("write JSON", error))?;
    let answer = DaemonClient::from_env()?.post("/v1/adapters", body.into()).await?;
    if json {
        output::json_answer(&answer)?;
    } else {
        let done = format!("the adapter '{name}' is {}", if enabled { "enabled" } else { "disabled" });
        CliMessage::new(done).hint("agtmux adapters").print_stderr();
    }
    Ok(())
}
