use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event submitted by a hook, a wrapper, a script or an external adapter. The event names its runtime, or the pane
/// or process that it comes from. The daemon also stores fields that are not listed here.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(default)]
pub struct EventSubmission {
    pub runtime_id: Option<String>,
    /// The target; `host` by default.
    pub target: Option<String>,
    /// The name of the tmux server. If not set, the event may belong to any server.
    pub server: Option<String>,
    /// The pane id, such as `%12`. Without a pane, agtmux finds the runtime by the processes in
    /// this event, or by the agent's conversation id.
    pub pane: Option<String>,
    pub agent_type: Option<String>,
    /// The id of a process that may be the agent.
    pub pid: Option<u32>,
    /// The start time of `pid`, in the kernel's unit.
    pub pid_start: Option<u64>,
    /// The ids of more processes that may be the agent: the sender's ancestors, nearest first.
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
    /// The name of the program that the process runs.
    pub program: Option<String>,
    /// The connection to the daemon: `unix` or `tcp`.
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
    /// agtmux found the event's runtime and applied the event to it.
    Bound,
    /// agtmux does not know the event's runtime yet. If it finds none within `state.bind_ttl` (30 s by default), it
    /// drops the event.
    PendingBind,
    /// The daemon has received the same event before.
    Duplicate,
}
