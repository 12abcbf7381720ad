use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::listing::TargetError;

/// How the daemon is and what it watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct DaemonHealth {
    pub schema_version: u32,
    /// `ok`, or `degraded` when something could not be read.
    pub status: String,
    pub version: String,
    pub api_version: u32,
    pub pid: u32,
    /// Where the daemon listens.
    pub socket: String,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// The last event that was published.
    pub seq: u64,
    pub store: StoreHealth,
    pub servers: Vec<ServerHealth>,
    pub target_errors: Vec<TargetError>,
    /// The parts of the daemon by name, such as `tmux_bridge` and `commander_availability`.
    pub components: BTreeMap<String, ComponentHealth>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ComponentHealth {
    /// `ok` or `degraded`.
    pub status: String,
    /// In words.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct StoreHealth {
    pub path: String,
    pub schema_version: u32,
    /// A database that could not be read at the start was moved here.
    pub quarantined: Option<String>,
    /// Why nothing can be stored at the moment.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ServerHealth {
    pub target: String,
    pub server: String,
    pub socket: String,
    pub pid: u32,
    pub tmux_version: String,
    pub panes: u32,
    /// `events` where the panes' terminals report their output, `polling` where they have to be asked.
    pub evidence: String,
    /// Whether our hooks are in place.
    pub hooks: bool,
}
