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

/// Defines the error codes. For each code, the macro gets a name for JSON and the HTTP status of the response. The
/// macro matches the name as `tt`, because a derive macro sees a `literal` fragment as a token group and not as a
/// literal.
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
    /// The URL path of the request does not exist.
    NotFound => "E_NOT_FOUND", 404;
    /// The target does not exist.
    TargetNotFound => "E_TARGET_NOT_FOUND", 404;
    /// A target with this name already exists.
    TargetExists => "E_TARGET_EXISTS", 409;
    /// The target is unreachable. Nothing was done.
    TargetUnreachable => "E_TARGET_UNREACHABLE", 502;
    /// The connection to the target broke after the request was sent. Whether the action was carried out is unknown.
    OutcomeUnknown => "E_OUTCOME_UNKNOWN", 502;
    /// The runtime that the request names does not exist or has ended.
    RuntimeNotFound => "E_RUNTIME_NOT_FOUND", 404;
    /// The request names a pane, an agent, a task or a shared terminal that does not exist.
    RefNotFound => "E_REF_NOT_FOUND", 404;
    /// The reference in the request matches several panes or agents.
    RefAmbiguous => "E_REF_AMBIGUOUS", 409;
    /// The reference in the request has none of the valid forms.
    RefInvalid => "E_REF_INVALID", 400;
    /// The idempotency key was already used with different content.
    IdempotencyConflict => "E_IDEMPOTENCY_CONFLICT", 409;
    /// The request is larger than 1 MiB.
    TooLarge => "E_TOO_LARGE", 413;
    /// The daemon could not write to its storage, so it did not accept the event or the change.
    NotStored => "E_NOT_STORED", 503;
    /// The daemon has too few free file descriptors to serve another client.
    Busy => "E_BUSY", 503;
    /// The pane no longer has the runtime that the request expects, or the pane's tmux server does not answer.
    RuntimeStale => "E_RUNTIME_STALE", 409;
    /// The agent's state or dialog is no longer the one that the request expects.
    StateChanged => "E_STATE_CHANGED", 409;
    /// The daemon does not know this snapshot, or the snapshot has expired.
    SnapshotExpired => "E_SNAPSHOT_EXPIRED", 409;
    /// A precondition of the action is not met.
    Precondition => "E_PRECONDITION", 409;
    /// agtmux does not see the whole subject of the dialog, so the request cannot be approved.
    SubjectTruncated => "E_SUBJECT_TRUNCATED", 409;
    /// The caller is an agent and may not do this: agents must not approve their own requests.
    CallerIsAgent => "E_CALLER_IS_AGENT", 403;
    /// The pane does not exist in tmux.
    PaneNotFound => "PANE_NOT_FOUND", 404;
    /// tmux is not installed.
    TmuxNotInstalled => "TMUX_NOT_INSTALLED", 502;
    /// A tmux command failed, or a process could not be signalled.
    SubprocessFailed => "SUBPROCESS_FAILED", 502;
    /// The agent does not run in a tmux pane.
    NoPaneId => "NO_PANE_ID", 400;
    /// tmux did not answer in time, or another action took too long.
    Timeout => "TIMEOUT", 504;
    /// The text was typed but not submitted: it is still in the input box.
    SendFailed => "SEND_FAILED", 502;
    /// Any other error, for example if agtmux cannot read an answer of tmux.
    Unknown => "UNKNOWN", 502;
    /// The token is missing or wrong.
    Unauthorized => "E_UNAUTHORIZED", 401;
    /// The caller may not make this request, for example because of its origin or its token.
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
