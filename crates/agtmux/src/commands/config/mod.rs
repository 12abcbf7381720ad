//! `agtmux config`: shows and checks the configuration.

mod check;
mod show;

use std::path::PathBuf;

use agtmux_api::config::{Config, DEFAULTS};
use agtmux_api::paths::Paths;
use clap::Subcommand;

use crate::error::{CliError, CliExit};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings, each with a comment
    Show {
        /// Print the defaults instead
        #[arg(long)]
        defaults: bool,
    },
    /// Print the path of the configuration file
    Path,
    /// Check a configuration file
    ///
    /// Exits with 0 if the file is valid. Exits with 2 and prints the line and the reason if not.
    Check {
        /// The file [default: your configuration file]
        file: Option<PathBuf>,
    },
}

pub(crate) fn run(command: ConfigCommand) -> Result<CliExit, CliError> {
    match command {
        ConfigCommand::Show { defaults: true } => print(DEFAULTS.as_bytes()),
        ConfigCommand::Show { defaults: false } => show::run(&Config::resolve_file(&Paths::from_env()?.config)?),
        ConfigCommand::Path => print(Config::resolve_file(&Paths::from_env()?.config)?.as_os_str().as_encoded_bytes()),
        ConfigCommand::Check { file } => check::run(file),
    }
}

fn print(text: &[u8]) -> Result<CliExit, CliError> {
    output::line(text)?;
    Ok(CliExit::Ok)
}
