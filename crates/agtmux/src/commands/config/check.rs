use std::path::{Path, PathBuf};

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_core::sanitize;

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

pub(super) fn run(file: Option<PathBuf>) -> Result<CliExit, CliError> {
    let Some(file) = file else { return check_own(&Config::resolve_file(&Paths::from_env()?.config)?) };
    // A missing file is an error only if the user named it; the default file is optional.
    if !file.exists() {
        let message = CliMessage::new(format!("file not found: '{}'", file.display())).hint("agtmux config path");
        return Err(CliError::new(CliExit::Usage, message));
    }
    check(&file)
}

fn check_own(file: &Path) -> Result<CliExit, CliError> {
    if file.exists() {
        return check(file);
    }
    output::print(&format!("{} does not exist; agtmux uses the defaults\n", shown(file)))?;
    Ok(CliExit::Ok)
}

fn check(file: &Path) -> Result<CliExit, CliError> {
    Config::load(file)?;
    output::print(&format!("{} is valid\n", shown(file)))?;
    Ok(CliExit::Ok)
}

fn shown(file: &Path) -> String {
    sanitize::for_terminal(&file.display().to_string())
}
