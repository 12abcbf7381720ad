//! `agtmux adapters`: which agents are understood, and how well.

use agtmux_api::wire::{AdapterSwitch, Adapters};
use clap::{Args, Subcommand};

use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::terminal::Terminal;
use crate::{output, render};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AdaptersArgs {
    #[command(subcommand)]
    switch: Option<Switch>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Switch {
    /// Read again what agents of this kind say and show
    Enable(Named),
    /// Read nothing that agents of this kind say or show; they are still listed, as unknown
    Disable(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// The kind of agent, as `agtmux adapters` lists it
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: AdaptersArgs) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let (answer, json, done) = match args.switch {
        None => (daemon.bytes("/v1/adapters", &()).await?, args.json, None),
        Some(switch) => {
            let (Named { name, json }, enabled) = match switch {
                Switch::Enable(named) => (named, true),
                Switch::Disable(named) => (named, false),
            };
            let body = serde_json::to_vec(&AdapterSwitch { name: name.clone(), enabled });
            let body = body.map_err(|error| CliError::io("write JSON", error))?;
            let answer = daemon.post("/v1/adapters", body.into()).await?;
            let done = format!("the adapter '{name}' is switched {}", if enabled { "on" } else { "off" });
            (answer, json, Some(Message::new(done)))
        }
    };
    if json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    if let Some(done) = done {
        done.hint("agtmux adapters").tell();
        return Ok(Exit::Ok);
    }
    let adapters: Adapters = parse(&answer)?;
    output::lines(&render::adapters(&adapters.items).lines(&Terminal::of_stdout()))?;
    Ok(Exit::Ok)
}
