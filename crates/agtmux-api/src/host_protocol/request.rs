//! Actions that a hub requests from a host, and their replies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::wire::{
    ActionGuards, ActionKind, AttachAction, KillAction, OutputAction, RespondAction, ResumeAction, SendAction,
};

/// An action that a hub may request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HubRequest {
    Send(SendAction),
    Respond(RespondAction),
    Attach(AttachAction),
    ViewOutput(OutputAction),
    Kill(KillAction),
    Resume(ResumeAction),
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
            Self::Kill(action) => serde_json::to_value(action),
            Self::Resume(action) => serde_json::to_value(action),
        }
    }

    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Send(_) => ActionKind::Send,
            Self::Respond(_) => ActionKind::Respond,
            Self::Attach(_) => ActionKind::Attach,
            Self::ViewOutput(_) => ActionKind::ViewOutput,
            Self::Kill(_) => ActionKind::Kill,
            Self::Resume(_) => ActionKind::Resume,
        }
    }

    /// Whether the action submits a text to an agent.
    pub fn submits_text(&self) -> bool {
        matches!(self, Self::Send(action) if action.text.is_some() && !action.no_enter)
    }

    pub fn guards_mut(&mut self) -> &mut ActionGuards {
        match self {
            Self::Send(action) => &mut action.guards,
            Self::Respond(action) => &mut action.guards,
            Self::Attach(action) => &mut action.guards,
            Self::ViewOutput(action) => &mut action.guards,
            Self::Kill(action) => &mut action.guards,
            Self::Resume(action) => &mut action.guards,
        }
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
