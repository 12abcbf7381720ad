//! The status page. Its data comes from the API.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

const INDEX: &str = include_str!("assets/index.html");
const SCRIPT: &str = include_str!("assets/app.js");
const STYLE: &str = include_str!("assets/style.css");

/// The files of the page. They contain no data, so that a browser can load them before it has a token.
pub(super) fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/app.js" | "/style.css" | "/favicon.ico")
}

pub(super) fn add_to(router: Router) -> Router {
    router
        .route("/", get(|| asset("text/html; charset=utf-8", INDEX)))
        .route("/app.js", get(|| asset("text/javascript; charset=utf-8", SCRIPT)))
        // Browsers always request an icon.
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .route("/style.css", get(|| asset("text/css; charset=utf-8", STYLE)))
}

async fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}
