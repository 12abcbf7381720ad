//! `agtmux task session-name`: prints a name for a task session. Needs neither the daemon nor tmux.

use std::path::PathBuf;

use agtmux_core::task::TaskSessionName;
use clap::Args;
use serde_json::json;

use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "The name has the form pi-PROJECT-ID. Pass it with --session, or set \
    PI_TMUX_SESSION or AGTMUX_SESSION to it. PROJECT is the name of the project's directory. Two projects can have the same PROJECT part, so the name \
    alone does not identify the project; agtmux stores the project with the session.\n\n\
    Example:\n  agtmux task session-name \"$PWD\" main")]
pub(crate) struct TaskSessionNameArgs {
    /// The absolute path of the project [default: the current directory]
    path: Option<PathBuf>,
    /// An id for the session [default: PI_SESSION_ID]
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TaskSessionNameArgs) -> CliResult {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?,
    };
    let id = args.id.clone().or_else(|| std::env::var("PI_SESSION_ID").ok()).unwrap_or_default();
    let usage_error = |error: agtmux_core::task::SessionNameError| {
        CliError::usage(error.to_string()).hint("agtmux task session-name \"$PWD\" ID")
    };
    let name = TaskSessionName::of(&path, &id).map_err(usage_error)?;
    match args.json {
        true => output::json(&json!({"session_name": name}))?,
        false => output::line(name.as_str())?,
    }
    Ok(())
}
