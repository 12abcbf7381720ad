//! Actions that a hub requests from a host, and their replies.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::wire::{
    ActionGuards, ActionKind, AttachAction, KillAction, LastAction, NewAction, OutputAction, RenameAction,
    RespondAction, ResumeAction, SendAction,
};

/// An action that a hub may request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HubRequest {
    Send(SendAction),
    Respond(RespondAction),
    Attach(AttachAction),
    ViewOutput(OutputAction),
    Last(LastAction),
    Kill(KillAction),
    Resume(ResumeAction),
    New(NewAction),
    Rename(RenameAction),
}

impl HubRequest {
    /// The path of this action in the HTTP API of the host's daemon.
    pub fn path(&self) -> String {
        format!("/v1/actions/{}", self.kind().as_str())
    }

    /// The request body for this action in the HTTP API of the host's daemon.
    pub fn body(&self) -> serde_json::Result<Value> {
        match self {
            Self::Send(action) => serde_json::to_value(action),
            Self::Respond(action) => serde_json::to_value(action),
            Self::Attach(action) => serde_json::to_value(action),
            Self::ViewOutput(action) => serde_json::to_value(action),
            Self::Last(action) => serde_json::to_value(action),
            Self::Kill(action) => serde_json::to_value(action),
            Self::Resume(action) => serde_json::to_value(action),
            Self::New(action) => serde_json::to_value(action),
            Self::Rename(action) => serde_json::to_value(action),
        }
    }

    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Send(_) => ActionKind::Send,
            Self::Respond(_) => ActionKind::Respond,
            Self::Attach(_) => ActionKind::Attach,
            Self::ViewOutput(_) => ActionKind::ViewOutput,
            Self::Last(_) => ActionKind::Last,
            Self::Kill(_) => ActionKind::Kill,
            Self::Resume(_) => ActionKind::Resume,
            Self::New(_) => ActionKind::New,
            Self::Rename(_) => ActionKind::Rename,
        }
    }

    /// Whether the action submits a text to an agent.
    pub fn submits_text(&self) -> bool {
        matches!(self, Self::Send(action) if action.text.is_some() && !action.no_enter)
    }

    /// Sets the time after which the host must not begin the action, by the host's clock.
    pub fn set_deadline(&mut self, not_after: Option<Timestamp>) {
        match self {
            Self::New(action) => action.not_after = not_after,
            other => {
                if let Some(guards) = other.guards_mut() {
                    guards.not_after = not_after;
                }
            }
        }
    }

    /// The guards of an action on an existing pane. `None` for an action that makes a new one.
    pub fn guards_mut(&mut self) -> Option<&mut ActionGuards> {
        Some(match self {
            Self::Send(action) => &mut action.guards,
            Self::Respond(action) => &mut action.guards,
            Self::Attach(action) => &mut action.guards,
            Self::ViewOutput(action) => &mut action.guards,
            Self::Last(action) => &mut action.guards,
            Self::Kill(action) => &mut action.guards,
            Self::Resume(action) => &mut action.guards,
            Self::Rename(action) => &mut action.guards,
            Self::New(_) => return None,
        })
    }
}

/// A request with a number. The host repeats this number in its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct NumberedRequest {
    pub id: u64,
    pub action: Box<HubRequest>,
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReply {
    pub id: u64,
    pub outcome: ReplyOutcome,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOutcome {
    /// The host's daemon carried out the action and responded with this body.
    Done(Value),
    Refused(ApiError),
    /// The host's daemon did not answer, so whether the action was carried out is unknown.
    Lost(String),
}
