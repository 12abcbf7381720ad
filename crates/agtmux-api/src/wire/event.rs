use agtmux_core::task::TaskEvent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::items::{PaneItem, SessionItem, WindowItem};
use super::listing::ListScope;

/// One event of the event stream; one line of `agtmux watch --format jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WatchEvent {
    pub schema_version: u32,
    /// The sequence number. It increases with every change, also across daemon restarts. All items of a snapshot share
    /// one.
    pub seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    #[serde(rename = "type")]
    pub kind: WatchEventKind,
    pub scope: ListScope,
    /// The changed item; null for `reset` and `task`.
    pub item: Option<WatchItem>,
    /// The task event; only present for `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskWatchEvent>>,
}

/// A task event and its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskWatchEvent {
    pub target: String,
    pub server: String,
    #[serde(flatten)]
    pub event: TaskEvent,
}

/// The kind of a stream event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WatchEventKind {
    /// The current value of an item; sent for each item at the start of a stream.
    Snapshot,
    /// An item that is new or has changed.
    Upsert,
    /// An item that was removed, with its last value.
    Remove,
    /// Discard all items: a new snapshot follows.
    Reset,
    /// A task event, with the same sequence number as in `/v1/tasks/events`.
    Task,
}

impl WatchEventKind {
    pub const ALL: [Self; 5] = [Self::Snapshot, Self::Upsert, Self::Remove, Self::Reset, Self::Task];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Upsert => "upsert",
            Self::Remove => "remove",
            Self::Reset => "reset",
            Self::Task => "task",
        }
    }
}

/// The item of an event. The event's `scope` names its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum WatchItem {
    // The order matters for parsing: each variant has a field that the later ones lack.
    Pane(Box<PaneItem>),
    Window(WindowItem),
    Session(SessionItem),
}
