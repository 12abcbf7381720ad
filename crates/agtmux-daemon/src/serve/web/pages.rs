//! The files of the dashboard and of the plain page. Their data comes from the API. The plain page is a small status
//! page; it takes the place of the dashboard in a build without the dashboard.

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::dashboard;
use crate::serve::router::no_such_path;

const INDEX: &str = include_str!("assets/index.html");
const SCRIPT: &str = include_str!("assets/app.js");
const STYLE: &str = include_str!("assets/style.css");

/// The files of the pages. They contain no data, so that a browser can load them before it has a token.
pub(super) fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/plain" | "/app.js" | "/style.css" | "/favicon.ico") || dashboard::is_file(path)
}

pub(super) fn add_to(router: Router) -> Router {
    router
        .route("/", get(|| async { dashboard_file("/").unwrap_or_else(plain_page) }))
        .route("/plain", get(|| async { plain_page() }))
        .route("/app.js", get(|| asset("text/javascript; charset=utf-8", SCRIPT)))
        // Browsers always request an icon.
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/style.css", get(|| asset("text/css; charset=utf-8", STYLE)))
        .route("/{file}", get(|uri: Uri| async move { dashboard_file(uri.path()).ok_or_else(no_such_path) }))
}

fn dashboard_file(path: &str) -> Option<Response> {
    let (kind, content) = dashboard::file(path)?;
    Some(([(header::CONTENT_TYPE, kind)], content.into_owned()).into_response())
}

fn plain_page() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], INDEX).into_response()
}

async fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}
