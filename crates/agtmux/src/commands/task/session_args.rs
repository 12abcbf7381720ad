//! Which session is meant, and on which tmux server.

use std::path::PathBuf;

use agtmux_api::wire::TaskSessionQuery;
use agtmux_tmux::{default_socket, socket_of_tmux_variable};
use clap::Args;

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;

#[derive(Debug, Args)]
pub(super) struct TaskSessionArgs {
    /// The tmux session that holds the tasks; else PI_TMUX_SESSION or AGTMUX_SESSION says so
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl TaskSessionArgs {
    pub(super) fn resolve(&self) -> Result<TaskSessionQuery, CliError> {
        let session = self.session_name().ok_or_else(|| {
            let message = CliMessage::new("no session is named")
                .because("neither PI_TMUX_SESSION nor AGTMUX_SESSION is set, and there is no --session")
                .hint("export AGTMUX_SESSION=$(agtmux task session-name \"$PWD\" main)");
            CliError::new(CliExit::Usage, message)
        })?;
        Ok(TaskSessionQuery { session, socket: Some(socket().display().to_string()) })
    }

    pub(super) fn session_name(&self) -> Option<String> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        self.session.clone().or_else(|| variable("PI_TMUX_SESSION")).or_else(|| variable("AGTMUX_SESSION"))
    }
}

/// Whom a session is for.
#[derive(Debug, Args)]
pub(super) struct KeeperArgs {
    /// The process of the harness that the session is kept for; else AGTMUX_KEEPER says so, else it is the agent that calls
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(2..))]
    keeper: Option<u32>,
}

impl KeeperArgs {
    pub(super) fn pid(&self) -> Result<Option<u32>, CliError> {
        let named = std::env::var("AGTMUX_KEEPER").ok().filter(|value| !value.is_empty());
        match (self.keeper, named) {
            (Some(pid), _) => Ok(Some(pid)),
            (None, None) => Ok(None),
            (None, Some(value)) => value.parse().ok().filter(|pid| *pid > 1).map(Some).ok_or_else(|| {
                let message = CliMessage::new(format!("AGTMUX_KEEPER is no process: '{}'", value.escape_debug()));
                CliError::new(CliExit::Usage, message.hint("export AGTMUX_KEEPER=$$"))
            }),
        }
    }
}

/// The project of a session: what was named, or AGTMUX_PROJECT, or else where one is.
pub(super) fn project(named: Option<&PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os("AGTMUX_PROJECT").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.cloned().or_else(variable)
}

/// The server that one is in, or else the usual one.
pub(super) fn socket() -> PathBuf {
    let inside = std::env::var("TMUX").ok().and_then(|value| socket_of_tmux_variable(&value));
    inside.unwrap_or_else(|| default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()))
}
