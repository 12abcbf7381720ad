//! `agtmux config`: shows and checks the configuration.

mod show;

use std::path::{Path, PathBuf};

use agtmux_api::config::{Config, DEFAULTS};
use agtmux_api::paths::Paths;
use clap::Subcommand;

use crate::error::{CliError, CliResult};
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
    /// Exits with 0 if the file is valid. Otherwise exits with 2 and prints the line of the error and the reason.
    Check {
        /// The file [default: your configuration file]
        file: Option<PathBuf>,
    },
}

pub(crate) fn run(command: ConfigCommand) -> CliResult {
    let own_file = || -> CliResult<PathBuf> { Ok(Config::resolve_file(&Paths::from_env()?.config)?) };
    match command {
        ConfigCommand::Show { defaults: true } => output::verbatim(DEFAULTS.as_bytes()),
        ConfigCommand::Show { defaults: false } => show::run(&own_file()?),
        ConfigCommand::Path => output::verbatim(own_file()?.as_os_str().as_encoded_bytes()),
        ConfigCommand::Check { file: Some(file) } if file.exists() => check(&file),
        // A missing file is an error only if the user named it; the default file is optional.
        ConfigCommand::Check { file: Some(file) } => {
            Err(CliError::usage(format!("file not found: '{}'", file.display())).hint("agtmux config path"))
        }
        ConfigCommand::Check { file: None } => check(&own_file()?),
    }
}

fn check(file: &Path) -> CliResult {
    let is_there = file.exists();
    if is_there {
        Config::load(file)?;
    }
    let what = if is_there { "is valid" } else { "does not exist; agtmux uses the defaults" };
    output::line(&format!("{} {what}", file.display()))
}
