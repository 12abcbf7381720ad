//! Checks every request that arrives over TCP.

use std::sync::Arc;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::{TMUX_HEADER, TMUX_TMPDIR_HEADER, WEB_HEADER};
use agtmux_tmux::platform::{self, TcpPeer};
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::auth::RequestAccess;
use super::login::LOGIN_PATH;
use super::logins::LoginEnd;
use super::{AccessLevel, TcpClient, WebAuth, pages};
use crate::actions::RequestCaller;
use crate::serve::Peer;
use crate::serve::extract::ErrorResponse;

/// Security headers on every response: no foreign resources, no framing, no type sniffing, no referrer, no access from
/// the page that opened this page.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; \
         require-trusted-types-for 'script'; trusted-types agtmux",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Headers that make the daemon watch another tmux server.
const CALLER_HEADERS: [&str; 2] = [TMUX_HEADER, TMUX_TMPDIR_HEADER];

pub(super) async fn check(
    State(auth): State<Arc<WebAuth>>,
    ConnectInfo(client): ConnectInfo<TcpClient>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match authorize(&auth, &request) {
        Ok(access) => {
            let (access, end) = access.map_or((None, None), |access| (Some(access.level), access.end));
            if access != Some(AccessLevel::Full) {
                CALLER_HEADERS.iter().for_each(|header| drop(request.headers_mut().remove(*header)));
            }
            let caller = caller(&request, client);
            request.extensions_mut().insert(caller);
            if let Some(access) = access {
                request.extensions_mut().insert(access);
            }
            let response = next.run(request).await;
            match end {
                Some(end) => ended_with_login(response, end),
                None => response,
            }
        }
        Err(error) => ErrorResponse(error).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Ends a stream when the login of its browser ends. Other responses are unchanged.
fn ended_with_login(response: Response, end: LoginEnd) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let body = body.into_data_stream().take_until(Box::pin(end.wait()));
    Response::from_parts(parts, Body::from_stream(body))
}

/// Returns the access that the request has. `None` for the files of the page and for a login, which need no token.
fn authorize(auth: &WebAuth, request: &Request) -> ApiResult<Option<RequestAccess>> {
    check_host(auth, request)?;
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    let is_page = is_read && pages::is_page(path);
    check_site(auth, request, is_page)?;
    if is_page {
        return Ok(None);
    }
    let has_token = request.headers().contains_key(header::AUTHORIZATION);
    if *request.method() == Method::POST && path == LOGIN_PATH && !has_token {
        return check_change_headers(request).map(|()| None);
    }
    let Some(access) = access(auth, request) else {
        let error = ApiError::new(ErrorCode::Unauthorized, "a token is required");
        return Err(error.with_hint("agtmux web   (a link for a browser; scripts use a bearer token)"));
    };
    if !is_read {
        check_change_headers(request)?;
        refuse_read_only(access.level)?;
    }
    Ok(Some(access))
}

fn headers_of(request: &Request, name: HeaderName) -> impl Iterator<Item = &str> {
    request.headers().get_all(name).iter().map(|value| value.to_str().unwrap_or("not text"))
}

fn check_host(auth: &WebAuth, request: &Request) -> ApiResult<()> {
    let host = headers_of(request, header::HOST).next().unwrap_or_default();
    let authority = request.uri().authority().map_or(host, |authority| authority.as_str());
    if auth.is_host(host) && auth.is_host(authority) && headers_of(request, header::HOST).count() == 1 {
        return Ok(());
    }
    Err(forbidden("the Host header is not a name of this server", "use the address that `agtmux web` prints"))
}

/// Refuses requests that a page of another site or port sends. Exception: a link on another site may open our page.
fn check_site(auth: &WebAuth, request: &Request, is_page: bool) -> ApiResult<()> {
    let is_foreign = |site: &str| !matches!(site, "same-origin" | "none");
    let from_other_site = !is_page && headers_of(request, HeaderName::from_static("sec-fetch-site")).any(is_foreign);
    if from_other_site || headers_of(request, header::ORIGIN).any(|origin| !auth.is_origin(origin)) {
        return Err(forbidden("requests from other sites are rejected", "open the address that `agtmux web` prints"));
    }
    Ok(())
}

/// A request that changes something needs the agtmux header and a JSON body, because a form on another site can send
/// neither.
fn check_change_headers(request: &Request) -> ApiResult<()> {
    let mut content_types = request.headers().get_all(header::CONTENT_TYPE).iter();
    let content_type =
        content_types.next().filter(|_| content_types.next().is_none()).and_then(|value| value.to_str().ok());
    let content_type = content_type.and_then(|content_type| content_type.split(';').next());
    let is_json = content_type.is_some_and(|content_type| content_type.trim().eq_ignore_ascii_case("application/json"));
    if !is_json || !request.headers().contains_key(WEB_HEADER) {
        return Err(forbidden(
            "requests that change something need a JSON body and the agtmux header",
            format!("send content-type: application/json and {WEB_HEADER}: 1"),
        ));
    }
    Ok(())
}

pub(crate) fn refuse_read_only(access: AccessLevel) -> ApiResult<()> {
    match access {
        AccessLevel::Full => Ok(()),
        AccessLevel::ReadOnly => Err(forbidden("this token is read-only", "agtmux web   (without --read-only)")),
    }
}

fn access(auth: &WebAuth, request: &Request) -> Option<RequestAccess> {
    let given = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    auth.access(given.strip_prefix("Bearer ")?.trim())
}

/// Finds the process that sent the request. The token does not show whether the caller is an agent, because an agent
/// may know the token, too.
fn caller(request: &Request, client: TcpClient) -> RequestCaller {
    let unknown_caller = RequestCaller { peer: None, via: "tcp", peer_gone: false, owner_pid: None, client: None };
    let Some(to) = client.to.filter(|_| client.is_local() && !matches!(*request.method(), Method::GET | Method::HEAD))
    else {
        return unknown_caller;
    };
    match platform::tcp_peer(client.from, to) {
        TcpPeer::Process(pid) => RequestCaller {
            peer: Some(Peer { uid: rustix::process::geteuid().as_raw(), pid: Some(pid) }),
            ..unknown_caller
        },
        TcpPeer::Hidden => unknown_caller,
        TcpPeer::Gone => RequestCaller { peer_gone: true, ..unknown_caller },
    }
}

fn forbidden(message: &str, hint: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, message).with_hint(hint)
}
