//! Browser login with a link that works once.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, WebLink, WebLinkRequest, WebLogin, WebSession};
use axum::Json;
use axum::body::Body;

use super::AccessLevel;
use crate::actions::{ChangeEntry, RequestCaller};
use crate::serve::ServeContext;
use crate::serve::extract::{JsonBody, JsonResult, MAX_SMALL_BODY_BYTES, parse_object, read_body};
use crate::serve::openapi::Error;

/// The path of [`post_login`].
pub(super) const LOGIN_PATH: &str = "/v1/web/login";

/// Create a link that logs in one browser, once, within two minutes.
///
/// Available on the unix socket only. Fails with `E_CALLER_IS_AGENT` if the caller is an agent, unless
/// `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/web/link", request_body = WebLinkRequest, responses(
    (status = 200, body = WebLink), Error<400>, Error<403>, Error<409>))]
pub(crate) async fn post_link(context: ServeContext, caller: RequestCaller, body: Body) -> JsonResult<WebLink> {
    if caller.via != "unix" {
        let error = ApiError::new(ErrorCode::Forbidden, "login links can only be created over the unix socket");
        return Err(error.with_hint("agtmux web url").into());
    }
    let request: WebLinkRequest = parse_object(&read_body(body, MAX_SMALL_BODY_BYTES).await?)?;
    let Some(auth) = &context.web_auth else {
        let error = ApiError::new(ErrorCode::Precondition, "no web port is configured");
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
    // A browser never sends the fragment of a URL, so the code is in no request and no referrer.
    let url = format!("http://{}/#code={code}", auth.browser_address());
    Ok(Json(WebLink { schema_version: SCHEMA_VERSION, url }))
}

/// Exchange the code of a login link for a bearer token.
///
/// Needs no token. The code works once.
#[utoipa::path(post, path = "/v1/web/login", request_body = WebLogin, responses(
    (status = 200, body = WebSession), Error<400>))]
pub(crate) async fn post_login(
    context: ServeContext,
    JsonBody(login): JsonBody<WebLogin, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<WebSession> {
    let Some((token, access)) = context.web_auth.as_ref().and_then(|auth| auth.redeem_link(&login.code)) else {
        let error =
            ApiError::new(ErrorCode::Unauthorized, "this link has been used already, or is older than two minutes");
        return Err(error.with_hint("agtmux web url").into());
    };
    let read_only = access == AccessLevel::ReadOnly;
    Ok(Json(WebSession { schema_version: SCHEMA_VERSION, token, read_only }))
}
