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

pub type ApiResult<T> = Result<T, ApiError>;

/// Defines the codes. Each code has a name in JSON and the HTTP status of its response. The macro matches the name as
/// `tt`, because a derive macro sees a `literal` fragment as a token group and not as a literal.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident => $name:tt, $status:literal;)+) => {
        /// A stable error code for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl ErrorCode {
            /// The HTTP status of a response with this code.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }
        }
    };
}

error_codes! {
    /// A parameter or the body is invalid.
    BadRequest => "E_BAD_REQUEST", 400;
    /// The path does not exist.
    NotFound => "E_NOT_FOUND", 404;
    /// The target does not exist.
    TargetNotFound => "E_TARGET_NOT_FOUND", 404;
    /// A target with this name already exists.
    TargetExists => "E_TARGET_EXISTS", 409;
    /// The target is unreachable. Nothing was done.
    TargetUnreachable => "E_TARGET_UNREACHABLE", 502;
    /// The connection to the target broke after the request was sent. Whether the action was carried out is unknown.
    OutcomeUnknown => "E_OUTCOME_UNKNOWN", 502;
    /// The runtime does not exist or has ended.
    RuntimeNotFound => "E_RUNTIME_NOT_FOUND", 404;
    /// The reference matches nothing.
    RefNotFound => "E_REF_NOT_FOUND", 404;
    /// The reference matches several panes or agents.
    RefAmbiguous => "E_REF_AMBIGUOUS", 409;
    /// The reference is not valid.
    RefInvalid => "E_REF_INVALID", 400;
    /// The idempotency key was already used with different content.
    IdempotencyConflict => "E_IDEMPOTENCY_CONFLICT", 409;
    /// The request is larger than 1 MiB.
    TooLarge => "E_TOO_LARGE", 413;
    /// The daemon could not store the event and did not accept it.
    NotStored => "E_NOT_STORED", 503;
    /// The daemon has too few free file descriptors for another client.
    Busy => "E_BUSY", 503;
    /// The pane now has another runtime than the one named, or its host does not answer.
    RuntimeStale => "E_RUNTIME_STALE", 409;
    /// The state or the dialog has changed since it was observed.
    StateChanged => "E_STATE_CHANGED", 409;
    /// The snapshot has expired or is unknown.
    SnapshotExpired => "E_SNAPSHOT_EXPIRED", 409;
    /// A precondition of the action is not met.
    Precondition => "E_PRECONDITION", 409;
    /// The subject of the dialog is not shown in full, so it cannot be approved.
    SubjectTruncated => "E_SUBJECT_TRUNCATED", 409;
    /// The caller is an agent and may not do this: agents must not approve their own requests.
    CallerIsAgent => "E_CALLER_IS_AGENT", 403;
    /// tmux: the pane does not exist.
    PaneNotFound => "PANE_NOT_FOUND", 404;
    /// tmux: the program is not installed.
    TmuxNotInstalled => "TMUX_NOT_INSTALLED", 502;
    /// tmux: the command failed.
    SubprocessFailed => "SUBPROCESS_FAILED", 502;
    /// The agent has no pane.
    NoPaneId => "NO_PANE_ID", 400;
    /// tmux: the command timed out.
    Timeout => "TIMEOUT", 504;
    /// The text was typed but not submitted: it is still in the input box.
    SendFailed => "SEND_FAILED", 502;
    /// tmux: any other error.
    Unknown => "UNKNOWN", 502;
    /// The token is missing or wrong.
    Unauthorized => "E_UNAUTHORIZED", 401;
    /// The origin or the token does not allow this request.
    Forbidden => "E_FORBIDDEN", 403;
    /// The path does not support this method.
    Method => "E_METHOD", 405;
    /// An internal error of the daemon.
    Internal => "E_INTERNAL", 500;
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, done_something: false }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
