//! How every request is read, and how every error is returned.

use std::convert::Infallible;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::ListQuery;
use axum::body::{Body, to_bytes};
use axum::extract::rejection::ExtensionRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ServeContext;
use crate::actions::RequestCaller;
use crate::store::StoreError;

/// The most bytes of a body. A text of 1 MiB may need 4 MiB in JSON.
pub(super) const MAX_BODY_BYTES: usize = 5 << 20;
/// The most bytes of a body that contains only names and switches.
pub(super) const MAX_SMALL_BODY_BYTES: usize = 4 << 10;

const MAX_QUOTED_CHARS: usize = 500;

/// A JSON object in the body. The type decides whether unknown fields are rejected.
pub(super) struct JsonBody<T, const MAX_BYTES: usize = MAX_BODY_BYTES>(pub(super) T);

/// A strict query string: unknown parameters are rejected, because a misspelled filter would list everything.
pub(super) struct StrictQuery<T = ListQuery>(pub(super) T);

/// A name in the path.
pub(super) struct NameInPath(pub(super) String);

/// An error as an HTTP response.
#[derive(Debug)]
pub(super) struct ErrorResponse(pub(super) ApiError);

/// The result of most handlers: a JSON document or an error.
pub(super) type JsonResult<T> = Result<Json<T>, ErrorResponse>;

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<StoreError> for ErrorResponse {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (status(self.0.code), Json(self.0)).into_response()
    }
}

/// Whether the same request may succeed later. True for errors that the daemon caused, not the request.
pub(crate) fn is_retryable(code: ErrorCode) -> bool {
    status(code).is_server_error()
}

fn status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl FromRequestParts<Self> for ServeContext {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, context: &Self) -> Result<Self, Infallible> {
        Ok(context.clone())
    }
}

/// Takes the caller from the request. The listener that accepted the connection has attached the caller.
impl<S: Send + Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ExtensionRejection> {
        Extension::from_request_parts(parts, state).await.map(|Extension(caller)| caller)
    }
}

impl<T: DeserializeOwned, S: Send + Sync, const MAX_BYTES: usize> FromRequest<S> for JsonBody<T, MAX_BYTES> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ErrorResponse> {
        let bytes = read_body(request.into_body(), MAX_BYTES).await?;
        Ok(Self(parse_object(&bytes)?))
    }
}

/// Reads all bytes of a body. The error is `TooLarge` if there are too many.
pub(super) async fn read_body(body: Body, max_bytes: usize) -> ApiResult<Bytes> {
    to_bytes(body, max_bytes).await.map_err(|error| {
        if std::error::Error::source(&error).is_some_and(|source| source.is::<LengthLimitError>()) {
            let limit = match max_bytes >> 20 {
                0 => format!("{} KiB", max_bytes >> 10),
                mib => format!("{mib} MiB"),
            };
            return ApiError::new(ErrorCode::TooLarge, format!("the request is larger than {limit}"))
                .with_hint("leave out data that is not needed, or write it to a file and send the path");
        }
        bad_body(format!("the body is incomplete: {error}"))
    })
}

/// Parses a JSON object. Arrays are rejected explicitly, because serde also reads a struct from an array of its fields.
pub(super) fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| bad_body(format!("the body is not valid JSON: {error}")))?;
    if !value.is_object() {
        return Err(bad_body("the body is not a JSON object".into()));
    }
    serde_json::from_value(value).map_err(|error| bad_body(format!("invalid request: {}", shorten(&error))))
}

/// The start of an error text. The full text may be long, because it quotes the body.
pub(super) fn shorten(error: &serde_json::Error) -> String {
    error.to_string().chars().take(MAX_QUOTED_CHARS).collect()
}

fn bad_body(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint("GET /v1/openapi.json describes every request")
}

/// Runs an action to its end even if the caller disconnects, because an action must not stop halfway.
pub(super) async fn run_detached<T: Send + 'static>(
    action: impl Future<Output = ApiResult<T>> + Send + 'static,
) -> JsonResult<T> {
    match tokio::spawn(action).await {
        Ok(outcome) => Ok(Json(outcome?)),
        Err(error) => {
            tracing::error!(%error, "an action panicked");
            Err(ApiError::new(ErrorCode::Internal, "the action failed unexpectedly")
                .with_hint("agtmux daemon logs")
                .into())
        }
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

    #[tokio::test]
    async fn a_body_has_the_limit_of_its_path() {
        let request = || Request::new(Body::from(format!(r#"{{"a":"{}"}}"#, "x".repeat(5000))));
        assert!(JsonBody::<Value>::from_request(request(), &()).await.is_ok());
        let small = JsonBody::<Value, MAX_SMALL_BODY_BYTES>::from_request(request(), &()).await;
        let error = small.err().map(|error| (error.0.code, error.0.message));
        assert_eq!(error, Some((ErrorCode::TooLarge, "the request is larger than 4 KiB".into())));
    }

    #[test]
    fn an_error_quotes_only_the_beginning_of_a_long_value() {
        let error = serde_json::from_value::<u32>("é".repeat(9000).into()).expect_err("not a number");
        assert_eq!(shorten(&error).chars().count(), MAX_QUOTED_CHARS);
    }

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
