use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use agtmux_api::wire::TaskRunRequest;
use agtmux_client::DaemonClient;

use crate::McpAccess;

/// Starts the tmux server of a task if it is not running.
pub type StartTmux = Arc<dyn Fn(TaskRunRequest) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// How the server reaches the daemon, and what its clients may do.
#[derive(Clone)]
pub struct McpOptions {
    pub daemon: DaemonClient,
    pub access: McpAccess,
    /// The directory in which commands and tasks run if the client names none.
    pub dir: PathBuf,
    /// The task session that the environment names. Default: the session of the project in `dir`.
    pub task_session: Option<String>,
    /// The socket of the tmux server for tasks, if the client does not run in a pane.
    pub socket: String,
    /// The shared terminal that the environment names.
    pub terminal: Option<String>,
    pub start_tmux: StartTmux,
}

impl std::fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpOptions").field("access", &self.access).field("dir", &self.dir).finish_non_exhaustive()
    }
}
