//! Errors in the format of the tmux-bridge document.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{BridgeError, BridgeMode};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::serve::extract::ErrorResponse;

const MISSING_TEXT: &str = "missing_text";

/// An error with an `error_type` of the tmux-bridge document. The `error_type` determines the HTTP status.
#[derive(Debug)]
pub(crate) struct BridgeFailure {
    error_type: &'static str,
    error: ApiError,
}

impl BridgeFailure {
    pub(super) fn new(error_type: &'static str, code: ErrorCode, message: impl Into<String>, hint: &str) -> Self {
        Self { error_type, error: ApiError::new(code, message).with_hint(hint) }
    }

    pub(super) fn bad_request(error_type: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self::new(error_type, ErrorCode::BadRequest, message, hint)
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status() == StatusCode::NOT_FOUND
    }

    /// Extends the message of an error for a request with several answers: says how many answers were sent before the
    /// error.
    pub(super) fn after_answers(mut self, sent: usize, count: usize) -> Self {
        if sent > 0 {
            self.error.message = format!("{sent} of {count} answers were sent: {}", self.error.message);
        }
        self
    }

    /// In the tmux-bridge document, the `error_type` for an invalid answer depends on the mode. If this error is about
    /// an invalid answer, sets the `error_type` of this mode.
    pub(super) fn for_mode(mut self, mode: BridgeMode) -> Self {
        if self.error_type == MISSING_TEXT {
            self.error_type = match mode {
                BridgeMode::Text | BridgeMode::Other => MISSING_TEXT,
                BridgeMode::Select => "invalid_option_index",
                BridgeMode::MultiSelect => "invalid_answers",
            };
        }
        self
    }

    fn status(&self) -> StatusCode {
        match self.error_type {
            "wrong_state" => StatusCode::CONFLICT,
            "agent_not_found" => StatusCode::NOT_FOUND,
            "caller_is_agent" => StatusCode::FORBIDDEN,
            "pane_not_found" | "tmux_not_installed" | "not_stored" => StatusCode::SERVICE_UNAVAILABLE,
            "send_failed" | "timeout" | "subprocess_failed" | "unknown" => StatusCode::BAD_GATEWAY,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<ApiError> for BridgeFailure {
    fn from(error: ApiError) -> Self {
        let error_type = match error.code {
            ErrorCode::Precondition
            | ErrorCode::StateChanged
            | ErrorCode::SnapshotExpired
            | ErrorCode::SubjectTruncated
            | ErrorCode::IdempotencyConflict => "wrong_state",
            ErrorCode::RefNotFound
            | ErrorCode::RuntimeNotFound
            | ErrorCode::PaneNotFound
            | ErrorCode::RuntimeStale
            | ErrorCode::TargetNotFound => "pane_not_found",
            ErrorCode::TmuxNotInstalled => "tmux_not_installed",
            ErrorCode::NotStored => "not_stored",
            ErrorCode::NoPaneId => "no_pane_id",
            ErrorCode::BadRequest | ErrorCode::TooLarge => MISSING_TEXT,
            ErrorCode::CallerIsAgent => "caller_is_agent",
            ErrorCode::SendFailed => "send_failed",
            ErrorCode::Timeout => "timeout",
            ErrorCode::SubprocessFailed => "subprocess_failed",
            _ => "unknown",
        };
        Self { error_type, error }
    }
}

impl From<ErrorResponse> for BridgeFailure {
    fn from(ErrorResponse(error): ErrorResponse) -> Self {
        error.into()
    }
}

impl IntoResponse for BridgeFailure {
    fn into_response(self) -> Response {
        let (status, error_type) = (self.status(), self.error_type.to_owned());
        let ApiError { code, message, hint, .. } = self.error;
        (status, Json(BridgeError { status: "error".into(), error_type, code, message, hint })).into_response()
    }
}
