//! Options that select the task session, its tmux server, its owner and its project.

use std::path::PathBuf;

use agtmux_api::wire::TaskSessionQuery;
use agtmux_core::task::{SessionNameError, TaskSessionName};
use agtmux_tmux::{default_socket, socket_of_tmux_variable};
use clap::Args;

use crate::error::{CliError, CliResult};
use crate::input::variable;

#[derive(Debug, Args)]
pub(super) struct TaskSessionArgs {
    /// The tmux session of the tasks [default: PI_TMUX_SESSION, else AGTMUX_SESSION, else agtmux-PROJECT]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl TaskSessionArgs {
    /// The given session, or the default session of the current project.
    pub(super) fn resolve(&self) -> CliResult<TaskSessionQuery> {
        self.resolve_in(None)
    }

    /// The given session, or the default session of this project.
    pub(super) fn resolve_in(&self, project_path: Option<&PathBuf>) -> CliResult<TaskSessionQuery> {
        self.session_name().map_or_else(|| default_session(project_path), Ok).map(query_of)
    }

    /// The session that an option or an environment variable names. `None` if neither names one. The caller then uses
    /// the project's default session.
    pub(super) fn session_name(&self) -> Option<String> {
        named_session(self.session.as_ref())
    }
}

/// Like [`TaskSessionArgs`], but fails if no session is named, because there is no default session.
#[derive(Debug, Args)]
pub(super) struct NamedSessionArgs {
    /// The tmux session of the tasks [default: PI_TMUX_SESSION, else AGTMUX_SESSION]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl NamedSessionArgs {
    /// Fails if no session is given.
    pub(super) fn resolve(&self) -> CliResult<TaskSessionQuery> {
        let session = self.session_name().ok_or_else(|| {
            CliError::usage("no session given")
                .because("--session is missing, and neither PI_TMUX_SESSION nor AGTMUX_SESSION is set")
                .hint("export AGTMUX_SESSION=$(agtmux task session-name \"$PWD\" main)")
        })?;
        Ok(query_of(session))
    }

    pub(super) fn session_name(&self) -> Option<String> {
        named_session(self.session.as_ref())
    }
}

/// The session that is given, or that an environment variable names.
pub(crate) fn named_session(given: Option<&String>) -> Option<String> {
    given.cloned().or_else(|| variable("PI_TMUX_SESSION")).or_else(|| variable("AGTMUX_SESSION"))
}

/// The session of tasks if the command line names none.
pub(crate) fn unnamed_session() -> CliResult<TaskSessionQuery> {
    TaskSessionArgs { session: None }.resolve()
}

fn query_of(session: String) -> TaskSessionQuery {
    TaskSessionQuery { session, socket: Some(socket().display().to_string()) }
}

/// `agtmux-PROJECT`, the session used if the user names none.
fn default_session(project_path: Option<&PathBuf>) -> CliResult<String> {
    let here = || std::env::current_dir().map_err(|error| CliError::io("find the current directory", error));
    let project = match project(project_path) {
        // The current directory completes a relative path.
        Some(path) => here()?.join(path),
        None => here()?,
    };
    let usage = |error: SessionNameError| CliError::usage(error.to_string()).hint("agtmux task --help");
    Ok(TaskSessionName::default_of(&project).map_err(usage)?.to_string())
}

/// The process that owns a task session.
#[derive(Debug, Args)]
pub(super) struct SessionOwnerArgs {
    /// The process that owns the session, usually an agent. While this process runs, other agents cannot replace the
    /// session's tasks, and `task startup` does not remove the session [default: AGTMUX_OWNER, or the calling agent]
    #[arg(long, alias = "keeper", value_name = "PID", value_parser = clap::value_parser!(u32).range(2..))]
    owner: Option<u32>,
}

/// The variables that name the owner. The second is the old name of the first.
const OWNER_VARIABLES: [&str; 2] = ["AGTMUX_OWNER", "AGTMUX_KEEPER"];

impl SessionOwnerArgs {
    pub(super) fn pid(&self) -> CliResult<Option<u32>> {
        if self.owner.is_some() {
            return Ok(self.owner);
        }
        let set = |name| Some((name, variable(name)?));
        let Some((name, value)) = OWNER_VARIABLES.into_iter().find_map(set) else { return Ok(None) };
        value.parse().ok().filter(|pid| *pid > 1).map(Some).ok_or_else(|| {
            CliError::usage(format!("{name} is not a process id: '{}'", value.escape_debug()))
                .hint(format!("export {name}=$$"))
        })
    }
}

/// The project of a session: the given path, or AGTMUX_PROJECT. `None` stands for the current directory.
pub(super) fn project(named: Option<&PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os("AGTMUX_PROJECT").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.cloned().or_else(variable)
}

/// The socket of the tmux server in which this process runs. Outside tmux, the socket of the default server.
pub(crate) fn socket() -> PathBuf {
    let inside = std::env::var("TMUX").ok().and_then(|value| socket_of_tmux_variable(&value));
    inside.unwrap_or_else(|| default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()))
}
