//! `agtmux task session-name`: needs no daemon and no tmux.

use std::path::PathBuf;

use agtmux_core::task::TaskSessionName;
use clap::Args;
use serde_json::json;

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The name is pi-PROJECT-ID. Two projects may share the first part, so it proves nothing: what belongs to \
    whom is written down with the session."
)]
pub(crate) struct TaskSessionNameArgs {
    /// The project, as a whole path; the current directory by default
    path: Option<PathBuf>,
    /// The id of the harness's session; PI_SESSION_ID by default
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TaskSessionNameArgs) -> Result<CliExit, CliError> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?,
    };
    let id = args.id.clone().or_else(|| std::env::var("PI_SESSION_ID").ok()).unwrap_or_default();
    let wrong = |error: agtmux_core::task::SessionNameError| {
        let message = CliMessage::new(error.to_string()).hint("agtmux task session-name \"$PWD\" ID");
        CliError::new(CliExit::Usage, message)
    };
    let name = TaskSessionName::of(&path, &id).map_err(wrong)?;
    match args.json {
        true => output::line(json!({"session_name": name}).to_string().as_bytes())?,
        false => output::line(name.as_str().as_bytes())?,
    }
    Ok(CliExit::Ok)
}
