//! What an error says to everyone: a code for programs, what happened, and the next command to run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<String>,
    /// Something was typed or signalled before it failed, or may have been.
    #[serde(default, skip_serializing_if = "is_false")]
    pub done_something: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub enum ErrorCode {
    /// A parameter or a body that cannot be read.
    #[serde(rename = "E_BAD_REQUEST")]
    BadRequest,
    /// No such path.
    #[serde(rename = "E_NOT_FOUND")]
    NotFound,
    /// No such target.
    #[serde(rename = "E_TARGET_NOT_FOUND")]
    TargetNotFound,
    /// There is a target of that name already.
    #[serde(rename = "E_TARGET_EXISTS")]
    TargetExists,
    /// The target is out of reach: nothing was done.
    #[serde(rename = "E_TARGET_UNREACHABLE")]
    TargetUnreachable,
    /// The line to the target broke after the request was sent: whether it was done is not known.
    #[serde(rename = "E_OUTCOME_UNKNOWN")]
    OutcomeUnknown,
    /// No such runtime, or one that has ended.
    #[serde(rename = "E_RUNTIME_NOT_FOUND")]
    RuntimeNotFound,
    /// A reference that names nothing.
    #[serde(rename = "E_REF_NOT_FOUND")]
    RefNotFound,
    /// A reference that names several things.
    #[serde(rename = "E_REF_AMBIGUOUS")]
    RefAmbiguous,
    /// A reference that cannot be read.
    #[serde(rename = "E_REF_INVALID")]
    RefInvalid,
    /// The key of another event with other content.
    #[serde(rename = "E_IDEMPOTENCY_CONFLICT")]
    IdempotencyConflict,
    /// More than 1 MiB.
    #[serde(rename = "E_TOO_LARGE")]
    TooLarge,
    /// It could not be stored, so it was not taken.
    #[serde(rename = "E_NOT_STORED")]
    NotStored,
    /// Another runtime lives there than the one that was meant, or its host does not answer.
    #[serde(rename = "E_RUNTIME_STALE")]
    RuntimeStale,
    /// The state, or the dialog, is not the one that was seen.
    #[serde(rename = "E_STATE_CHANGED")]
    StateChanged,
    /// The snapshot is too old to be acted on, or is not known.
    #[serde(rename = "E_SNAPSHOT_EXPIRED")]
    SnapshotExpired,
    /// Things are not such that it can be done.
    #[serde(rename = "E_PRECONDITION")]
    Precondition,
    /// An agent may not do this: it could approve itself.
    #[serde(rename = "E_CALLER_IS_AGENT")]
    CallerIsAgent,
    /// tmux: the pane does not exist.
    #[serde(rename = "PANE_NOT_FOUND")]
    PaneNotFound,
    /// tmux: there is no such program.
    #[serde(rename = "TMUX_NOT_INSTALLED")]
    TmuxNotInstalled,
    /// tmux: it failed.
    #[serde(rename = "SUBPROCESS_FAILED")]
    SubprocessFailed,
    /// The agent has no pane.
    #[serde(rename = "NO_PANE_ID")]
    NoPaneId,
    /// tmux: it did not answer in time.
    #[serde(rename = "TIMEOUT")]
    Timeout,
    /// The text was typed and is still in the input box.
    #[serde(rename = "SEND_FAILED")]
    SendFailed,
    /// tmux: something else.
    #[serde(rename = "UNKNOWN")]
    Unknown,
    /// No token, or a wrong one.
    #[serde(rename = "E_UNAUTHORIZED")]
    Unauthorized,
    /// Not from there, or not with this token.
    #[serde(rename = "E_FORBIDDEN")]
    Forbidden,
    /// The method does not fit the path.
    #[serde(rename = "E_METHOD")]
    Method,
    /// A fault of ours.
    #[serde(rename = "E_INTERNAL")]
    Internal,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, done_something: false }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
