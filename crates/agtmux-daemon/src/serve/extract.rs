//! Requests that cannot be understood get an answer that says why.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::ListQuery;
use axum::Json;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

/// A query string, read strictly: a filter with a typing error must not list everything.
pub(super) struct Asked<T = ListQuery>(pub(super) T);

/// The name of something, as the path has it.
pub(super) struct NameInPath(pub(super) String);

/// An error on its way out.
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

/// Whether the same request may be taken another time: the fault is not its own.
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

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
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
                let error = ApiError::new(ErrorCode::NotFound, "nothing has a name that is no text");
                Err(ErrorResponse(error.with_hint("GET /v1/openapi.json lists the paths")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_ours_may_pass_and_one_of_the_request_does_not() {
        for code in [ErrorCode::Internal, ErrorCode::NotStored, ErrorCode::Timeout, ErrorCode::Unknown] {
            assert!(is_retryable(code), "{code:?}");
        }
        for code in [ErrorCode::BadRequest, ErrorCode::RuntimeNotFound, ErrorCode::IdempotencyConflict] {
            assert!(!is_retryable(code), "{code:?}");
        }
    }
}
