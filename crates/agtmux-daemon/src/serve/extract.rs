//! Extractors and error responses.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::ListQuery;
use axum::Json;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

/// A strict query string: unknown parameters are rejected, because a misspelled filter would list everything.
pub(super) struct StrictQuery<T = ListQuery>(pub(super) T);

/// A name in the path.
pub(super) struct NameInPath(pub(super) String);

/// An error as an HTTP response.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub(super) ApiError);

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (status(self.0.code), Json(self.0)).into_response()
    }
}

/// Whether the same request may succeed later: the error is not in the request.
pub(crate) fn is_retryable(code: ErrorCode) -> bool {
    status(code).is_server_error()
}

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::BadRequest => StatusCode::BAD_REQUEST,
        ErrorCode::RefInvalid => StatusCode::BAD_REQUEST,
        ErrorCode::NoPaneId => StatusCode::BAD_REQUEST,
        ErrorCode::NotFound
        | ErrorCode::TargetNotFound
        | ErrorCode::RuntimeNotFound
        | ErrorCode::RefNotFound
        | ErrorCode::PaneNotFound => StatusCode::NOT_FOUND,
        ErrorCode::RefAmbiguous
        | ErrorCode::IdempotencyConflict
        | ErrorCode::TargetExists
        | ErrorCode::RuntimeStale
        | ErrorCode::StateChanged
        | ErrorCode::SnapshotExpired
        | ErrorCode::Precondition => StatusCode::CONFLICT,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::CallerIsAgent | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::TargetUnreachable | ErrorCode::OutcomeUnknown => StatusCode::BAD_GATEWAY,
        ErrorCode::TmuxNotInstalled | ErrorCode::SubprocessFailed | ErrorCode::SendFailed | ErrorCode::Unknown => {
            StatusCode::BAD_GATEWAY
        }
        ErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::NotStored => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Method => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                let error = ApiError::new(ErrorCode::BadRequest, rejection.body_text());
                Err(ErrorResponse(error.with_hint("GET /v1/openapi.json lists the parameters of every path")))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NameInPath {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => {
                let error = ApiError::new(ErrorCode::NotFound, "the name in the path is not valid UTF-8");
                Err(ErrorResponse(error.with_hint("GET /v1/openapi.json lists the paths")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_errors_are_retryable_and_request_errors_are_not() {
        for code in [ErrorCode::Internal, ErrorCode::NotStored, ErrorCode::Timeout, ErrorCode::Unknown] {
            assert!(is_retryable(code), "{code:?}");
        }
        for code in [ErrorCode::BadRequest, ErrorCode::RuntimeNotFound, ErrorCode::IdempotencyConflict] {
            assert!(!is_retryable(code), "{code:?}");
        }
    }
}
