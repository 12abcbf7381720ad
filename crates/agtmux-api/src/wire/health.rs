use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::listing::TargetError;

/// The health of the daemon and of the tmux servers that it watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct DaemonHealth {
    pub schema_version: u32,
    /// `ok`, or `degraded` if a tmux server, the database or a component of the daemon has a problem.
    pub status: String,
    pub version: String,
    pub api_version: u32,
    pub pid: u32,
    /// The path of the daemon's socket.
    pub socket: String,
    pub started_at: Timestamp,
    /// The sequence number of the last published event.
    pub seq: u64,
    pub store: StoreHealth,
    pub servers: Vec<ServerHealth>,
    pub target_errors: Vec<TargetError>,
    /// The daemon's components by name, such as `tmux_bridge` and `commander_availability`.
    pub components: BTreeMap<String, ComponentHealth>,
}

/// The health of one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ComponentHealth {
    /// `ok` or `degraded`.
    pub status: String,
    /// A description of the status.
    pub detail: String,
}

/// The health of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StoreHealth {
    pub path: String,
    pub schema_version: u32,
    /// The path to which an unreadable database was moved at startup.
    pub quarantined: Option<String>,
    /// Why the daemon cannot write to the database, or how the database is damaged; null if the database has no
    /// problem.
    pub error: Option<String>,
}

/// A watched tmux server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ServerHealth {
    pub target: String,
    pub server: String,
    pub socket: String,
    pub pid: u32,
    pub tmux_version: String,
    pub panes: u32,
    /// `events` if agtmux notices output on the panes' terminals, `polling` if agtmux polls the panes.
    pub evidence: String,
    /// Whether agtmux's hooks are installed.
    pub hooks: bool,
}
