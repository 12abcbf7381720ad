//! The texts of task events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::delivery::EventLevel;
use super::event::{TaskEvent, TaskEventKind};
use super::exit::TaskExit;
use crate::ids::WindowId;

/// Marks a conversation message as a notification, not as user input.
pub const MESSAGE_PREFIX: &str = "[tmux-task notification]";

/// The cause of a task event, with the data for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventCause<'a> {
    Started,
    Exited(TaskExit),
    BellThenExited(TaskExit),
    Notify,
    Input(&'a str),
    Disappeared { by_user: bool },
}

impl EventCause<'_> {
    pub(super) fn message(self, window: WindowId, task: &str) -> String {
        let text = match self {
            Self::Started => "started".to_owned(),
            Self::Exited(exit) => format!("exited with {exit}"),
            Self::BellThenExited(exit) => format!("sent a terminal notification, then exited with {exit}"),
            Self::Notify => "sent a terminal notification".to_owned(),
            Self::Input(prompt) => format!("is waiting for input: {prompt}"),
            Self::Disappeared { by_user: false } => "disappeared from session".to_owned(),
            Self::Disappeared { by_user: true } => {
                "disappeared from session after the user manually killed it".to_owned()
            }
        };
        format!("tmux task {window} ({task}) {text}")
    }

    /// `Warning` if the task waits at a prompt, has disappeared, or exited in any way other than with code 0. Otherwise
    /// `Info`.
    pub(super) fn level(self) -> EventLevel {
        match self {
            Self::Input(_) | Self::Disappeared { .. } => EventLevel::Warning,
            Self::Exited(exit) | Self::BellThenExited(exit) if !exit.is_success() => EventLevel::Warning,
            _ => EventLevel::Info,
        }
    }

    pub(super) fn kind(self) -> TaskEventKind {
        match self {
            Self::Started => TaskEventKind::Started,
            Self::Exited(_) | Self::BellThenExited(_) => TaskEventKind::Exited,
            Self::Notify => TaskEventKind::Notify,
            Self::Input(_) => TaskEventKind::Input,
            Self::Disappeared { .. } => TaskEventKind::Disappeared,
        }
    }
}

/// The conversation message for a batch of task events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMessage {
    pub custom_type: String,
    pub text: String,
    pub details: MessageDetails,
}

/// Metadata that marks the message as a task notification, not as user input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageDetails {
    pub source: String,
    pub not_user_input: bool,
    pub session_id: Option<String>,
    pub session_name: String,
    pub level: EventLevel,
    pub events: Vec<TaskEvent>,
}

/// What a harness shows for one event. Every event has one, so that a harness always knows the last sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessLine {
    pub seq: u64,
    pub at: Timestamp,
    /// The text of the notice that only the user sees, if the event has one.
    pub notice: Option<String>,
    /// The message for the conversation, if the event has one.
    pub message: Option<HarnessMessage>,
}

/// A conversation message that a harness can join with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessMessage {
    #[serde(flatten)]
    pub message: ConversationMessage,
    /// The text without [`MESSAGE_PREFIX`], to append to the text of an earlier message.
    pub body: String,
}

impl HarnessLine {
    /// The line for an event. `message` is the message that ends with this event.
    pub fn of(event: &TaskEvent, message: Option<ConversationMessage>) -> Self {
        let body = |text: &str| text.strip_prefix(MESSAGE_PREFIX).unwrap_or(text).trim_start().to_owned();
        let message = message.map(|message| HarnessMessage { body: body(&message.text), message });
        Self { seq: event.seq, at: event.at, notice: event.delivery.notice.then(|| event.message.clone()), message }
    }
}

impl ConversationMessage {
    pub const CUSTOM_TYPE: &str = "tmux-task-event";
    pub const SOURCE: &str = "extension";

    /// Builds the message for events of one session. Returns `None` if no event belongs in a conversation.
    pub fn of(events: &[TaskEvent], session_id: Option<&str>) -> Option<Self> {
        let delivered: Vec<&TaskEvent> =
            events.iter().filter(|event| event.delivery.message && !event.collapsed).collect();
        let first = delivered.first()?;
        let lines: Vec<String> = delivered.iter().map(|event| with_output(event)).collect();
        let details = MessageDetails {
            source: Self::SOURCE.to_owned(),
            not_user_input: true,
            session_id: session_id.map(str::to_owned),
            session_name: first.session.to_string(),
            level: events.iter().map(|event| event.level).max().unwrap_or(EventLevel::Info),
            events: events.to_vec(),
        };
        Some(Self {
            custom_type: Self::CUSTOM_TYPE.to_owned(),
            text: format!("{MESSAGE_PREFIX} {}", lines.join("\n")),
            details,
        })
    }
}

fn with_output(event: &TaskEvent) -> String {
    if event.recent_output.is_empty() {
        return event.message.clone();
    }
    format!("{}\nRecent output:\n  {}", event.message, event.recent_output.join("\n  "))
}
