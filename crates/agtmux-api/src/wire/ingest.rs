use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event that somebody brings: a hook, a wrapper, a script, an adapter of others. It names its runtime, or where it
/// comes from. Fields that are not listed here are kept with it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct EventSubmission {
    pub runtime_id: Option<String>,
    /// `host` when left out.
    pub target: Option<String>,
    /// The tmux server's name; any when left out.
    pub server: Option<String>,
    /// `%12`. Where it is not known, the processes or the session tell whose event it is.
    pub pane: Option<String>,
    pub agent_type: Option<String>,
    /// A process that may be the agent.
    pub pid: Option<u32>,
    /// That process's start time, in the kernel's unit.
    pub pid_start: Option<u64>,
    /// More processes that may be the agent: the sender's parents, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// The start times of `pids`, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pid_starts: Vec<u64>,
    /// The socket of the tmux server that the sender runs in.
    pub socket: Option<String>,
    /// The sender's working directory.
    pub cwd: Option<String>,
    /// hook, notify, wrapper, file, screen (also called poller), title, process, osc or bell.
    pub source: String,
    pub event_type: String,
    pub source_event_id: Option<String>,
    /// The same key twice is the same event; `source_event_id` stands in for it.
    pub dedupe_key: Option<String>,
    /// The source's own count; the higher is the newer.
    pub source_seq: Option<u64>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub event_time: Option<Timestamp>,
    #[schema(value_type = Option<Object>)]
    pub payload: Option<serde_json::Value>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EventReceipt {
    pub schema_version: u32,
    pub event_id: String,
    pub status: EventReceiptStatus,
    pub runtime_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventReceiptStatus {
    /// It belongs to a runtime and has been taken into account.
    Bound,
    /// Its runtime is not known yet. It is dropped if that does not change within 30 s.
    PendingBind,
    /// It was there already.
    Duplicate,
}
