use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event submitted by a hook, a wrapper, a script or an external adapter. It names its runtime or its origin.
/// Fields that are not listed here are stored with the event.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct EventSubmission {
    pub runtime_id: Option<String>,
    /// The target; `host` by default.
    pub target: Option<String>,
    /// The tmux server's name; any server by default.
    pub server: Option<String>,
    /// The pane id, such as `%12`. Without a pane, agtmux finds the runtime by the processes in
    /// this event, or by the agent's conversation id.
    pub pane: Option<String>,
    pub agent_type: Option<String>,
    /// A process that may be the agent.
    pub pid: Option<u32>,
    /// The start time of `pid`, in the kernel's unit.
    pub pid_start: Option<u64>,
    /// More processes that may be the agent: the sender's ancestors, nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<u32>,
    /// The start times of `pids`, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pid_starts: Vec<u64>,
    /// The socket of the sender's tmux server.
    pub socket: Option<String>,
    /// The sender's working directory.
    pub cwd: Option<String>,
    /// The source: hook, notify, wrapper, file, screen (or poller), title, process, osc or bell.
    pub source: String,
    pub event_type: String,
    pub source_event_id: Option<String>,
    /// Idempotency key: events with the same key count once. Defaults to `source_event_id`.
    pub dedupe_key: Option<String>,
    /// The source's own sequence number; a higher number is newer.
    pub source_seq: Option<u64>,
    pub event_time: Option<Timestamp>,
    #[schema(value_type = Option<Object>)]
    pub payload: Option<serde_json::Value>,
}

/// The process that sent an event.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EventSender {
    pub uid: Option<u32>,
    pub pid: Option<u32>,
    /// The program's name.
    pub program: Option<String>,
    /// `unix` or `tcp`.
    pub via: String,
    /// The type of the agent that the sender belongs to; null if the sender descends from no agent.
    pub agent: Option<String>,
}

/// The reply to a submitted event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct EventReceipt {
    pub schema_version: u32,
    pub event_id: String,
    pub status: EventReceiptStatus,
    pub runtime_id: Option<String>,
}

/// What happened to a submitted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventReceiptStatus {
    /// The event was assigned to a runtime and applied.
    Bound,
    /// The event's runtime is not known yet. The event is dropped if none is found in time (`state.bind_ttl`, 30 s by
    /// default).
    PendingBind,
    /// The event was already received.
    Duplicate,
}
