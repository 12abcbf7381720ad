use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Selects agents that have ended.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EndedAgentQuery {
    /// Agents that ended at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The maximum number of agents; 100 by default, at most 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The agents of this machine that have ended, the newest end first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EndedAgentList {
    pub schema_version: u32,
    pub items: Vec<EndedAgentItem>,
}

/// An agent that has ended. A session that runs again in another process is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EndedAgentItem {
    pub runtime_id: String,
    pub agent_type: String,
    pub name: Option<String>,
    /// The agent's own id of its session; null if agtmux does not know it.
    pub session: Option<String>,
    pub cwd: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// The tmux session and window in which the agent ran.
    pub session_name: Option<String>,
    pub window_name: Option<String>,
    /// The arguments with which the agent is started again.
    pub arguments: Vec<String>,
    /// Whether the agent ran until its tmux server ended.
    pub ended_with_server: bool,
    /// Why the agent cannot be started again; null if it can.
    pub not_resumable: Option<String>,
}
