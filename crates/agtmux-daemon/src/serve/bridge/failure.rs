//! Errors in the format of the tmux-bridge document.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{BridgeError, BridgeMode};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

const MISSING_TEXT: &str = "missing_text";

#[derive(Debug)]
pub(crate) struct BridgeFailure {
    status: StatusCode,
    error: BridgeError,
}

impl BridgeFailure {
    pub(super) fn new(
        status: StatusCode,
        (code, error_type): (ErrorCode, &str),
        message: impl Into<String>,
        hint: &str,
    ) -> Self {
        let error = BridgeError {
            status: "error".into(),
            error_type: error_type.into(),
            code,
            message: message.into(),
            hint: Some(hint.into()),
        };
        Self { status, error }
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Adds how many of several answers were sent before the error.
    pub(super) fn after_answers(mut self, sent: usize, count: usize) -> Self {
        if sent > 0 {
            self.error.message = format!("{sent} of {count} answers were sent: {}", self.error.message);
        }
        self
    }

    /// The same error has another `error_type` in each mode.
    pub(super) fn for_mode(mut self, mode: BridgeMode) -> Self {
        if self.error.error_type == MISSING_TEXT {
            self.error.error_type = match mode {
                BridgeMode::Text | BridgeMode::Other => MISSING_TEXT,
                BridgeMode::Select => "invalid_option_index",
                BridgeMode::MultiSelect => "invalid_answers",
            }
            .into();
        }
        self
    }

    pub(super) fn bad_request(error_type: &str, message: &str, hint: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, (ErrorCode::BadRequest, error_type), message, hint)
    }
}

impl From<ApiError> for BridgeFailure {
    fn from(error: ApiError) -> Self {
        let (status, error_type) = match error.code {
            ErrorCode::Precondition
            | ErrorCode::StateChanged
            | ErrorCode::SnapshotExpired
            | ErrorCode::IdempotencyConflict => (StatusCode::CONFLICT, "wrong_state"),
            ErrorCode::RefNotFound
            | ErrorCode::RuntimeNotFound
            | ErrorCode::PaneNotFound
            | ErrorCode::RuntimeStale
            | ErrorCode::TargetNotFound => (StatusCode::SERVICE_UNAVAILABLE, "pane_not_found"),
            ErrorCode::TmuxNotInstalled => (StatusCode::SERVICE_UNAVAILABLE, "tmux_not_installed"),
            ErrorCode::NotStored => (StatusCode::SERVICE_UNAVAILABLE, "not_stored"),
            ErrorCode::NoPaneId => (StatusCode::BAD_REQUEST, "no_pane_id"),
            ErrorCode::BadRequest | ErrorCode::TooLarge => (StatusCode::BAD_REQUEST, MISSING_TEXT),
            ErrorCode::CallerIsAgent => (StatusCode::FORBIDDEN, "caller_is_agent"),
            ErrorCode::SendFailed => (StatusCode::BAD_GATEWAY, "send_failed"),
            ErrorCode::Timeout => (StatusCode::BAD_GATEWAY, "timeout"),
            ErrorCode::SubprocessFailed => (StatusCode::BAD_GATEWAY, "subprocess_failed"),
            _ => (StatusCode::BAD_GATEWAY, "unknown"),
        };
        let ApiError { code, message, hint, .. } = error;
        let error = BridgeError { status: "error".into(), error_type: error_type.into(), code, message, hint };
        Self { status, error }
    }
}

impl IntoResponse for BridgeFailure {
    fn into_response(self) -> Response {
        (self.status, Json(self.error)).into_response()
    }
}
