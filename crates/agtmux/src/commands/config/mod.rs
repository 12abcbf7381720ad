//! `agtmux config`

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
    /// Print the settings in force, each with its explanation
    Show {
        /// Print the defaults, whatever your file says
        #[arg(long)]
        defaults: bool,
    },
    /// Print where the settings file is looked for
    Path,
    /// Check a settings file: exit 0 when it is fine, 2 with the line and the remedy when not
    Check {
        /// The file; yours by default
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
