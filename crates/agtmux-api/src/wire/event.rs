use agtmux_core::task::TaskEvent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::items::{PaneItem, SessionItem, WindowItem};
use super::listing::ListScope;

/// One line of `agtmux watch --format jsonl`, one event of the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WatchEvent {
    pub schema_version: u32,
    /// Grows with every change, also over restarts of the daemon. The items of a snapshot share one.
    pub seq: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    #[serde(rename = "type")]
    pub kind: WatchEventKind,
    pub scope: ListScope,
    /// Null for `reset` and for `task`.
    pub item: Option<WatchItem>,
    /// Only of a `task`: what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskWatchEvent>>,
}

/// What happened to a task, and on which server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskWatchEvent {
    pub target: String,
    pub server: String,
    #[serde(flatten)]
    pub event: TaskEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WatchEventKind {
    /// An item as it is now; sent for each item when a stream begins.
    Snapshot,
    /// An item that is new or different.
    Upsert,
    /// An item that is gone, as it was last seen.
    Remove,
    /// Forget everything: a snapshot follows.
    Reset,
    /// Something happened to a managed task. Its number is the one that `/v1/tasks/events` gives it.
    Task,
}

impl WatchEventKind {
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

/// What an event is about; the event's `scope` says which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum WatchItem {
    // The order matters when reading: each has a field that the later ones lack.
    Pane(Box<PaneItem>),
    Window(WindowItem),
    Session(SessionItem),
}
