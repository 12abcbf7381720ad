use agtmux_core::task::TaskEvent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::items::{PaneIdentity, PaneItem, SessionIdentity, SessionItem, WindowIdentity, WindowItem};
use super::listing::{ListScope, TargetError};
use super::targets::TargetStatus;
use crate::SCHEMA_VERSION;

/// One event of the event stream; one line of `agtmux watch --format jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct WatchEvent {
    pub schema_version: u32,
    /// The sequence number of the event. It increases with every change and continues after a daemon restart. All items
    /// of a snapshot have the same number.
    pub seq: u64,
    pub at: Timestamp,
    #[serde(rename = "type")]
    pub kind: WatchEventKind,
    pub scope: ListScope,
    /// The changed item; null for `reset`, `target_errors` and `task`.
    pub item: Option<WatchItem>,
    /// The task event; present only if the type is `task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskWatchEvent>>,
    /// All current outages; present only if the type is `target_errors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_errors: Option<Vec<TargetError>>,
}

impl WatchEvent {
    /// Creates an event without an item, a task event or outages.
    pub fn new(kind: WatchEventKind, scope: ListScope, seq: u64, at: Timestamp) -> Self {
        let schema_version = SCHEMA_VERSION;
        Self { schema_version, seq, at, kind, scope, item: None, task: None, target_errors: None }
    }

    pub fn of_item(kind: WatchEventKind, item: WatchItem, seq: u64, at: Timestamp) -> Self {
        let event = Self::new(kind, item.scope(), seq, at);
        Self { item: Some(item), ..event }
    }

    /// What the event is about. `None` for an event that concerns the whole stream.
    pub fn subject(&self) -> Option<EventSubject> {
        match (self.kind, &self.item) {
            (_, Some(item)) => Some(EventSubject::Item(item.identity())),
            (WatchEventKind::TargetErrors, None) => Some(EventSubject::TargetErrors),
            (WatchEventKind::Task, None) => Some(EventSubject::Task(self.seq)),
            (_, None) => None,
        }
    }
}

/// Identifies what an event is about. A later event about the same subject replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventSubject {
    Item(ItemIdentity),
    /// The list of all current outages.
    TargetErrors,
    /// A task event with this sequence number. No later event replaces it.
    Task(u64),
}

/// A task event, and the tmux server on which the task runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TaskWatchEvent {
    pub target: String,
    pub server: String,
    #[serde(flatten)]
    pub event: TaskEvent,
}

/// The kind of a stream event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchEventKind {
    /// The current value of an item; sent for each item at the start of a stream.
    Snapshot,
    /// An item that is new or has changed.
    Upsert,
    /// An item that no longer exists, with its last value.
    Remove,
    /// Discard all items: a new snapshot follows.
    Reset,
    /// The outages have changed: `target_errors` lists all current ones. Also sent at the start of a stream if there
    /// are any.
    TargetErrors,
    /// A task event, with the same sequence number as in `/v1/tasks/events`.
    Task,
}

impl WatchEventKind {
    pub const ALL: [Self; 6] =
        [Self::Snapshot, Self::Upsert, Self::Remove, Self::Reset, Self::TargetErrors, Self::Task];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Upsert => "upsert",
            Self::Remove => "remove",
            Self::Reset => "reset",
            Self::TargetErrors => "target_errors",
            Self::Task => "task",
        }
    }
}

/// The item that an event is about. The event's `scope` names the type of the item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(untagged)]
pub enum WatchItem {
    // The order matters for parsing: each variant has a field that the later ones lack.
    Pane(Box<PaneItem>),
    Window(WindowItem),
    Session(SessionItem),
    Target(Box<TargetStatus>),
}

/// Identifies an item of any scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemIdentity {
    Pane(PaneIdentity),
    Window(WindowIdentity),
    Session(SessionIdentity),
    /// The name of the target.
    Target(String),
}

impl WatchItem {
    pub fn scope(&self) -> ListScope {
        match self {
            Self::Pane(_) => ListScope::Panes,
            Self::Window(_) => ListScope::Windows,
            Self::Session(_) => ListScope::Sessions,
            Self::Target(_) => ListScope::Targets,
        }
    }

    pub fn identity(&self) -> ItemIdentity {
        match self {
            Self::Pane(pane) => ItemIdentity::Pane(pane.identity.clone()),
            Self::Window(window) => ItemIdentity::Window(window.identity.clone()),
            Self::Session(session) => ItemIdentity::Session(session.identity.clone()),
            Self::Target(target) => ItemIdentity::Target(target.name.clone()),
        }
    }
}

impl From<&PaneItem> for WatchItem {
    fn from(pane: &PaneItem) -> Self {
        Self::Pane(Box::new(pane.clone()))
    }
}

impl From<&WindowItem> for WatchItem {
    fn from(window: &WindowItem) -> Self {
        Self::Window(window.clone())
    }
}

impl From<&SessionItem> for WatchItem {
    fn from(session: &SessionItem) -> Self {
        Self::Session(session.clone())
    }
}

impl From<&TargetStatus> for WatchItem {
    fn from(target: &TargetStatus) -> Self {
        Self::Target(Box::new(target.clone()))
    }
}
