//! What all routes share: headers, limits and the errors for unknown paths.

use std::sync::Arc;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::host_protocol::EVIDENCE_PATH;
use agtmux_api::{API_HEADER, API_VERSION, TMUX_HEADER, TMUX_TMPDIR_HEADER, VERSION, VERSION_HEADER};
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::{Json, Router};

use super::ServeContext;
use super::extract::ErrorResponse;

pub(super) fn router(context: ServeContext) -> Router {
    let (router, _) = super::routes().split_for_parts();
    let contract = Arc::new(super::openapi());
    router
        .route(EVIDENCE_PATH, axum::routing::get(super::evidence::get_evidence))
        .route("/v1/openapi.json", axum::routing::get(move || async move { Json(contract.as_ref().clone()) }))
        .fallback(|| async { no_such_path() })
        .method_not_allowed_fallback(|| async {
            ErrorResponse(
                ApiError::new(ErrorCode::Method, "this path does not support this method")
                    .with_hint("GET /v1/openapi.json lists the methods of each path"),
            )
        })
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(context.clone(), discover_caller_server))
        .layer(from_fn(add_version_headers))
        .with_state(context)
}

pub(super) fn no_such_path() -> ErrorResponse {
    let error = ApiError::new(ErrorCode::NotFound, "no such path");
    ErrorResponse(error.with_hint("GET /v1/openapi.json lists the paths"))
}

/// Adds the daemon's version to every response, including errors.
async fn add_version_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(API_HEADER, HeaderValue::from(API_VERSION));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    response
}

/// Starts to watch the caller's tmux server if it is not watched yet.
async fn discover_caller_server(context: ServeContext, request: Request, next: Next) -> Response {
    let (tmux, tmpdir) = (text(&request, TMUX_HEADER), text(&request, TMUX_TMPDIR_HEADER));
    context.discovery.add_caller_sockets(tmux, tmpdir).await;
    next.run(request).await
}

fn text(request: &Request, header: &str) -> Option<String> {
    request.headers().get(header)?.to_str().ok().map(str::to_owned)
}
