//! Checks every request that arrives over TCP.

use std::sync::Arc;

use agtmux_api::WEB_HEADER;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_tmux::platform::{self, TcpPeer};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::login::cookie_name;
use super::{AccessLevel, TcpClient, WebAuth};
use crate::actions::RequestCaller;
use crate::serve::Peer;
use crate::serve::extract::ErrorResponse;

/// Security headers on every response: no foreign resources, no framing, no type sniffing, no referrer.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

const MAX_COOKIES: usize = 16;

pub(super) async fn check(
    State(auth): State<Arc<WebAuth>>,
    ConnectInfo(client): ConnectInfo<TcpClient>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match authorize(&auth, &request) {
        Ok(()) => {
            let caller = caller(&request, client);
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => ErrorResponse(error).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn authorize(auth: &WebAuth, request: &Request) -> ApiResult<()> {
    let all =
        |name: HeaderName| request.headers().get_all(name).iter().map(|value| value.to_str().unwrap_or("not text"));
    let host = all(header::HOST).next().unwrap_or_default();
    let authority = request.uri().authority().map_or(host, |authority| authority.as_str());
    if !auth.is_host(host) || !auth.is_host(authority) || all(header::HOST).count() != 1 {
        return Err(forbidden(
            "the Host header is not a name of this server",
            "use the address that `agtmux web url` prints",
        ));
    }
    let is_foreign = |site: &str| !matches!(site, "same-origin" | "none");
    // Only `/login/CODE`: longer paths need a token.
    let is_login = request.uri().path().strip_prefix("/login/").is_some_and(|code| !code.contains('/'));
    let from_other_site = !is_login && all(HeaderName::from_static("sec-fetch-site")).any(is_foreign);
    if from_other_site || all(header::ORIGIN).any(|origin| !auth.is_origin(origin)) {
        return Err(forbidden(
            "requests from other sites are rejected",
            "open the address that `agtmux web url` prints",
        ));
    }
    if is_login && request.method() == Method::GET {
        return Ok(());
    }
    let Some(access) = access(auth, request) else {
        let error = ApiError::new(ErrorCode::Unauthorized, "a token or a login is required");
        return Err(error.with_hint("agtmux web url   (a link for a browser; scripts use a bearer token)"));
    };
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    check_write(access, request)
}

/// Checks a request that changes something. Such a request needs the agtmux header and a JSON body, because a form on
/// another site can send neither.
fn check_write(access: AccessLevel, request: &Request) -> ApiResult<()> {
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
    match access {
        AccessLevel::Full => Ok(()),
        AccessLevel::ReadOnly => {
            Err(forbidden("this token or login is read-only", "agtmux web url   (without --read-only)"))
        }
    }
}

fn access(auth: &WebAuth, request: &Request) -> Option<AccessLevel> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(given) = text(header::AUTHORIZATION) {
        return auth.access_by_token(given.strip_prefix("Bearer ")?.trim());
    }
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own_name = cookie_name(auth);
    // Another server on this host may have set a cookie of the same name, which must not hide the valid one.
    pairs
        .filter(|(name, _)| *name == own_name)
        .take(MAX_COOKIES)
        .find_map(|(_, session)| auth.access_by_session(session))
}

/// Finds the process that sent the request. The token does not show whether the caller is an agent, because an agent
/// may know the token, too.
fn caller(request: &Request, client: TcpClient) -> RequestCaller {
    let unknown_caller = RequestCaller { peer: None, via: "tcp", peer_gone: false, owner_pid: None };
    let is_local = client.from.ip().is_loopback() || Some(client.from.ip()) == client.to.map(|to| to.ip());
    let Some(to) = client.to.filter(|_| is_local && !matches!(*request.method(), Method::GET | Method::HEAD)) else {
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
