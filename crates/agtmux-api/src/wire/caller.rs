use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the daemon knows about the process that sent the request. The daemon reads it from the process table, so it is
/// known even if the process has lost its environment.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct CallerReport {
    pub schema_version: u32,
    /// The type of the agent that is or started the caller; null if no agent is known to have started it.
    pub agent_type: Option<String>,
    /// The runtime of that agent; null if the agent does not run in a tmux pane of this host.
    pub runtime_id: Option<String>,
    /// The name of the tmux server that contains the caller.
    pub server: Option<String>,
    /// The socket of that server.
    pub socket: Option<String>,
    /// The pane that contains the caller.
    pub pane_id: Option<String>,
}
