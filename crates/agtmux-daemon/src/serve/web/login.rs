//! Opening and closing the port, and browser login with a link that works once.

use std::time::Duration;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{
    ActionKind, WebLink, WebLinkRequest, WebLogin, WebLoginList, WebOpenRequest, WebRevokeRequest, WebSession,
};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, header};

use super::AccessLevel;
use super::port::{PortEnd, PortStatus};
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
    refuse_tcp(&caller)?;
    let request: WebLinkRequest = parse_object(&read_body(body, MAX_SMALL_BODY_BYTES).await?)?;
    let Some(port) = context.web.status().await else { return Err(port_closed().into()) };
    let create = async { Ok(link(&context, &port, request.read_only, PortEnd::default())) };
    let entry = entry(&caller, "create a web link", request.read_only);
    Ok(Json(context.actions.audited_change_unless_agent(entry, create).await?))
}

/// Open the web port, and create a link that logs in one browser, once, within two minutes.
///
/// If the port is open already, only sets its new end. Available on the unix socket only. Fails with
/// `E_CALLER_IS_AGENT` if the caller is an agent, unless `actions.allow_from_agents` is set.
#[utoipa::path(post, path = "/v1/web/open", request_body = WebOpenRequest, responses(
    (status = 200, body = WebLink), Error<400>, Error<403>, Error<409>))]
pub(crate) async fn post_open(context: ServeContext, caller: RequestCaller, body: Body) -> JsonResult<WebLink> {
    refuse_tcp(&caller)?;
    let request: WebOpenRequest = parse_object(&read_body(body, MAX_SMALL_BODY_BYTES).await?)?;
    if request.for_seconds == Some(0) {
        let error = ApiError::new(ErrorCode::BadRequest, "for_seconds must be at least 1");
        return Err(error.with_hint("agtmux web --for 8h").into());
    }
    let end = request.for_seconds.map_or_else(PortEnd::default, |time| PortEnd::after(Duration::from_secs(time)));
    let open = async {
        let port = context.web.open(&context, end).await.map_err(|error| {
            let error = ApiError::new(ErrorCode::Precondition, format!("cannot open the web port: {error}"));
            error.with_hint("choose another address with web.listen, then run: agtmux daemon restart")
        })?;
        Ok(link(&context, &port, request.read_only, end))
    };
    let entry = entry(&caller, "open the web port", request.read_only);
    Ok(Json(context.actions.audited_change_unless_agent(entry, open).await?))
}

/// Exchange the code of a login link for a bearer token.
///
/// Needs no token. The code works once.
#[utoipa::path(post, path = "/v1/web/login", request_body = WebLogin, responses(
    (status = 200, body = WebSession), Error<400>))]
pub(crate) async fn post_login(
    context: ServeContext,
    headers: HeaderMap,
    JsonBody(login): JsonBody<WebLogin, MAX_SMALL_BODY_BYTES>,
) -> JsonResult<WebSession> {
    let browser = headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or("unknown");
    let redeemed = context.web.status().await.and_then(|port| port.auth.redeem_link(&login.code, browser));
    let Some((token, access)) = redeemed else {
        let error =
            ApiError::new(ErrorCode::Unauthorized, "this link has been used already, or is older than two minutes");
        return Err(error.with_hint("agtmux web").into());
    };
    let read_only = access == AccessLevel::ReadOnly;
    Ok(Json(WebSession { schema_version: SCHEMA_VERSION, token, read_only }))
}

/// List the browsers that are logged in.
#[utoipa::path(get, path = "/v1/web/logins", responses((status = 200, body = WebLoginList)))]
pub(crate) async fn get_logins(context: ServeContext) -> JsonResult<WebLoginList> {
    Ok(Json(list(&context).await))
}

/// End the login of one browser, and its streams.
///
/// Available on the unix socket only. Returns the browsers that are still logged in.
#[utoipa::path(post, path = "/v1/web/revoke", request_body = WebRevokeRequest, responses(
    (status = 200, body = WebLoginList), Error<400>, Error<403>, Error<404>))]
pub(crate) async fn post_revoke(context: ServeContext, caller: RequestCaller, body: Body) -> JsonResult<WebLoginList> {
    refuse_tcp(&caller)?;
    let request: WebRevokeRequest = parse_object(&read_body(body, MAX_SMALL_BODY_BYTES).await?)?;
    let revoke = async {
        match context.web.status().await.is_some_and(|port| port.auth.revoke(&request.id)) {
            true => Ok(()),
            false => {
                let error = ApiError::new(ErrorCode::NotFound, "no browser is logged in under this id");
                Err(error.with_hint("agtmux web sessions"))
            }
        }
    };
    let entry =
        ChangeEntry { kind: ActionKind::Web, caller: &caller, summary: "revoke a web login", name: &request.id };
    context.actions.audited_change(entry, revoke).await?;
    Ok(Json(list(&context).await))
}

/// Close the web port and end all logins.
///
/// Available on the unix socket only. Returns the logins that were ended by their number in `items`.
#[utoipa::path(post, path = "/v1/web/stop", responses((status = 200, body = WebLoginList), Error<403>, Error<409>))]
pub(crate) async fn post_stop(context: ServeContext, caller: RequestCaller) -> JsonResult<WebLoginList> {
    refuse_tcp(&caller)?;
    let before = list(&context).await;
    let close = async { context.web.close().await.map(drop).ok_or_else(port_closed) };
    let entry = ChangeEntry { kind: ActionKind::Web, caller: &caller, summary: "close the web port", name: "web" };
    context.actions.audited_change(entry, close).await?;
    Ok(Json(WebLoginList { open: false, ..before }))
}

fn link(context: &ServeContext, port: &PortStatus, read_only: bool, login_end: PortEnd) -> WebLink {
    let access = if read_only { AccessLevel::ReadOnly } else { AccessLevel::Full };
    let code = port.auth.create_link(access, login_end.at.map(|(at, _)| at));
    // A browser never sends the fragment of a URL, so the code is in no request and no referrer.
    let url = format!("{}/#code={code}", context.web.link_base(port.auth.browser_address()));
    WebLink { schema_version: SCHEMA_VERSION, url, public: context.web.has_public_url(), closes_at: port.closes_at }
}

async fn list(context: &ServeContext) -> WebLoginList {
    let port = context.web.status().await;
    WebLoginList {
        schema_version: SCHEMA_VERSION,
        open: port.is_some(),
        address: port.as_ref().map(|port| port.auth.browser_address().to_string()),
        closes_at: port.as_ref().and_then(|port| port.closes_at),
        items: port.map(|port| port.auth.list_logins()).unwrap_or_default(),
    }
}

fn entry<'a>(caller: &'a RequestCaller, summary: &'a str, read_only: bool) -> ChangeEntry<'a> {
    let name = if read_only { "read-only" } else { "full access" };
    ChangeEntry { kind: ActionKind::Web, caller, summary, name }
}

/// A browser must not create links for other browsers, and must not end their logins.
fn refuse_tcp(caller: &RequestCaller) -> ApiResult<()> {
    if caller.via == "unix" {
        return Ok(());
    }
    let error = ApiError::new(ErrorCode::Forbidden, "web access can only be managed over the unix socket");
    Err(error.with_hint("agtmux web"))
}

fn port_closed() -> ApiError {
    let error = ApiError::new(ErrorCode::Precondition, "the web port is closed");
    error.with_hint("agtmux web   (opens it until the daemon stops; web.listen in the configuration opens it always)")
}
