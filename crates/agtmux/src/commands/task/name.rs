//! `agtmux task session-name`: needs no daemon and no tmux.

use std::path::PathBuf;

use agtmux_core::task::TaskSession;
use clap::Args;
use serde_json::json;

use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "The name is pi-PROJECT-ID. Two projects may share the first part, so it proves nothing: what belongs to \
    whom is written down with the session."
)]
pub(crate) struct NameArgs {
    /// The project, as a whole path; the current directory by default
    path: Option<PathBuf>,
    /// The id of the harness's session; PI_SESSION_ID by default
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &NameArgs) -> Result<Exit, CliError> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?,
    };
    let id = args.id.clone().or_else(|| std::env::var("PI_SESSION_ID").ok()).unwrap_or_default();
    let wrong = |error: agtmux_core::task::SessionNameError| {
        let message = Message::new(error.to_string()).hint("agtmux task session-name \"$PWD\" ID");
        CliError::new(Exit::Usage, message)
    };
    let name = TaskSession::of(&path, &id).map_err(wrong)?;
    match args.json {
        true => output::line(json!({"session_name": name}).to_string().as_bytes())?,
        false => output::line(name.as_str().as_bytes())?,
    }
    Ok(Exit::Ok)
}
