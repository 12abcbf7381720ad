//! Browser login with a link that works once.

use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, WebLink, WebLinkRequest};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{AccessLevel, WebAuth};
use crate::actions::{ChangeEntry, RequestCaller};
use crate::serve::ServeContext;
use crate::serve::extract::{ErrorResponse, JsonResult, MAX_SMALL_BODY_BYTES, NameInPath, parse_object, read_body};
use crate::serve::routes::Error;

/// The name of the session cookie. It contains the port, because browsers share cookies between all ports of a host.
pub(super) fn cookie_name(auth: &WebAuth) -> String {
    format!("agtmux-{}", auth.address().port())
}

/// Create a link that logs in one browser, once, within two minutes.
///
/// Available on the unix socket only. Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless
/// `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/web/link", request_body = WebLinkRequest, responses(
    (status = 200, body = WebLink), Error<400>, Error<403>, Error<409>))]
pub(crate) async fn post_link(context: ServeContext, caller: RequestCaller, body: Body) -> JsonResult<WebLink> {
    if caller.via != "unix" {
        let error = ApiError::new(ErrorCode::Forbidden, "links can only be created over the unix socket");
        return Err(error.with_hint("agtmux web url").into());
    }
    let request: WebLinkRequest = parse_object(&read_body(body, MAX_SMALL_BODY_BYTES).await?)?;
    let Some(auth) = &context.web_auth else {
        let error = ApiError::new(ErrorCode::Precondition, "the daemon has no web port");
        return Err(error.with_hint("set web.listen = \"127.0.0.1:7777\" and run agtmux daemon restart").into());
    };
    let (access, name) = match request.read_only {
        true => (AccessLevel::ReadOnly, "read-only"),
        false => (AccessLevel::Full, "full access"),
    };
    let summary = "create a web link";
    let entry = ChangeEntry { kind: ActionKind::Web, caller: &caller, summary, name };
    let create = async { Ok(auth.create_link(access)) };
    let code = context.actions.audited_change_unless_agent(entry, create).await?;
    let url = format!("http://{}/login/{code}", auth.browser_address());
    Ok(Json(WebLink { schema_version: SCHEMA_VERSION, url }))
}

pub(super) async fn log_in(State(auth): State<Arc<WebAuth>>, NameInPath(code): NameInPath) -> Response {
    let Some(session) = auth.redeem_link(&code) else {
        let error =
            ApiError::new(ErrorCode::Unauthorized, "this link has been used already, or is older than two minutes");
        return ErrorResponse(error.with_hint("agtmux web url")).into_response();
    };
    let cookie = format!("{}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800", cookie_name(&auth));
    (StatusCode::SEE_OTHER, [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)]).into_response()
}
