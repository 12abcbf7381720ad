//! API errors: a code for programs, a message for people, and a hint with the next step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<String>,
    /// Whether the action may have typed text or sent a signal before it failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub done_something: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A stable error code for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
pub enum ErrorCode {
    /// A parameter or the body is invalid.
    #[serde(rename = "E_BAD_REQUEST")]
    BadRequest,
    /// The path does not exist.
    #[serde(rename = "E_NOT_FOUND")]
    NotFound,
    /// The target does not exist.
    #[serde(rename = "E_TARGET_NOT_FOUND")]
    TargetNotFound,
    /// A target with this name already exists.
    #[serde(rename = "E_TARGET_EXISTS")]
    TargetExists,
    /// The target is unreachable. Nothing was done.
    #[serde(rename = "E_TARGET_UNREACHABLE")]
    TargetUnreachable,
    /// The connection to the target broke after the request was sent. Whether the action was carried out is unknown.
    #[serde(rename = "E_OUTCOME_UNKNOWN")]
    OutcomeUnknown,
    /// The runtime does not exist or has ended.
    #[serde(rename = "E_RUNTIME_NOT_FOUND")]
    RuntimeNotFound,
    /// The reference matches nothing.
    #[serde(rename = "E_REF_NOT_FOUND")]
    RefNotFound,
    /// The reference matches several panes or agents.
    #[serde(rename = "E_REF_AMBIGUOUS")]
    RefAmbiguous,
    /// The reference is not valid.
    #[serde(rename = "E_REF_INVALID")]
    RefInvalid,
    /// The idempotency key was already used with different content.
    #[serde(rename = "E_IDEMPOTENCY_CONFLICT")]
    IdempotencyConflict,
    /// The request is larger than 1 MiB.
    #[serde(rename = "E_TOO_LARGE")]
    TooLarge,
    /// The daemon could not store the event and did not accept it.
    #[serde(rename = "E_NOT_STORED")]
    NotStored,
    /// The pane now has another runtime than the one named, or its host does not answer.
    #[serde(rename = "E_RUNTIME_STALE")]
    RuntimeStale,
    /// The state or the dialog has changed since it was observed.
    #[serde(rename = "E_STATE_CHANGED")]
    StateChanged,
    /// The snapshot has expired or is unknown.
    #[serde(rename = "E_SNAPSHOT_EXPIRED")]
    SnapshotExpired,
    /// A precondition of the action is not met.
    #[serde(rename = "E_PRECONDITION")]
    Precondition,
    /// The caller is an agent and may not do this: agents must not approve themselves.
    #[serde(rename = "E_CALLER_IS_AGENT")]
    CallerIsAgent,
    /// tmux: the pane does not exist.
    #[serde(rename = "PANE_NOT_FOUND")]
    PaneNotFound,
    /// tmux: the program is not installed.
    #[serde(rename = "TMUX_NOT_INSTALLED")]
    TmuxNotInstalled,
    /// tmux: the command failed.
    #[serde(rename = "SUBPROCESS_FAILED")]
    SubprocessFailed,
    /// The agent has no pane.
    #[serde(rename = "NO_PANE_ID")]
    NoPaneId,
    /// tmux: the command timed out.
    #[serde(rename = "TIMEOUT")]
    Timeout,
    /// The text was typed but not submitted: it is still in the input box.
    #[serde(rename = "SEND_FAILED")]
    SendFailed,
    /// tmux: any other error.
    #[serde(rename = "UNKNOWN")]
    Unknown,
    /// The token is missing or wrong.
    #[serde(rename = "E_UNAUTHORIZED")]
    Unauthorized,
    /// The origin or the token does not allow this request.
    #[serde(rename = "E_FORBIDDEN")]
    Forbidden,
    /// The path does not support this method.
    #[serde(rename = "E_METHOD")]
    Method,
    /// An internal error of the daemon.
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
