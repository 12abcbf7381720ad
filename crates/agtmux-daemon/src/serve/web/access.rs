//! What every request that comes over TCP has to pass.

use std::sync::Arc;

use agtmux_api::WEB_HEADER;
use agtmux_api::error::{ApiError, ErrorCode};
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

/// On every answer: nothing from elsewhere is loaded, nothing of ours is framed, guessed at or told to others.
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
    State(door): State<Arc<WebAuth>>,
    ConnectInfo(client): ConnectInfo<TcpClient>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match authorize(&door, &request) {
        Ok(()) => {
            let asker = asker(&request, client);
            request.extensions_mut().insert(asker);
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

fn authorize(door: &WebAuth, request: &Request) -> Result<(), ApiError> {
    let all =
        |name: HeaderName| request.headers().get_all(name).iter().map(|value| value.to_str().unwrap_or("not text"));
    let host = all(header::HOST).next().unwrap_or_default();
    let asked = request.uri().authority().map_or(host, |authority| authority.as_str());
    if !door.is_host(host) || !door.is_host(asked) || all(header::HOST).count() != 1 {
        return Err(forbidden("this is not a name of this server", "use the address that `agtmux web url` prints"));
    }
    if all(header::ORIGIN).any(|origin| !door.is_origin(origin)) {
        return Err(forbidden("a page from elsewhere may not ask", "open the address that `agtmux web url` prints"));
    }
    let elsewhere = |site: &str| !matches!(site, "same-origin" | "none");
    // Just the one path: whatever else begins like it is for those who are let in.
    let enters = request.uri().path().strip_prefix("/login/").is_some_and(|code| !code.contains('/'));
    if !enters && all(HeaderName::from_static("sec-fetch-site")).any(elsewhere) {
        return Err(forbidden("a page from elsewhere may not ask", "open the address that `agtmux web url` prints"));
    }
    if enters && request.method() == Method::GET {
        return Ok(());
    }
    let Some(access) = access(door, request) else {
        let error = ApiError::new(ErrorCode::Unauthorized, "you are not let in");
        return Err(error.with_hint("agtmux web url   (a link for a browser; scripts use a bearer token)"));
    };
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    check_write(access, request)
}

/// A form of a page elsewhere can send neither that header nor JSON.
fn check_write(access: AccessLevel, request: &Request) -> Result<(), ApiError> {
    let mut kinds = request.headers().get_all(header::CONTENT_TYPE).iter();
    let kind = kinds.next().filter(|_| kinds.next().is_none()).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    let json = kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !json || !request.headers().contains_key(WEB_HEADER) {
        return Err(forbidden(
            "what changes something has to be JSON and to say that it is meant",
            format!("send content-type: application/json and {WEB_HEADER}: 1"),
        ));
    }
    match access {
        AccessLevel::Full => Ok(()),
        AccessLevel::ReadOnly => Err(forbidden("you may only look", "agtmux web url   (without --read-only)")),
    }
}

fn access(door: &WebAuth, request: &Request) -> Option<AccessLevel> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(given) = text(header::AUTHORIZATION) {
        return door.access_by_token(given.strip_prefix("Bearer ")?.trim());
    }
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let ours = cookie_name(door);
    // Another server of this machine may have set one of the same name: it must not hide the good one.
    pairs.filter(|(name, _)| *name == ours).take(MAX_COOKIES).find_map(|(_, session)| door.access_by_session(session))
}

/// Which process it is that asks for something to be done: an agent may know the token as well.
fn asker(request: &Request, client: TcpClient) -> RequestCaller {
    let nobody = RequestCaller { peer: None, via: "tcp", peer_gone: false, owner_pid: None };
    let is_local = client.from.ip().is_loopback() || Some(client.from.ip()) == client.to.map(|to| to.ip());
    let Some(to) = client.to.filter(|_| is_local && !matches!(*request.method(), Method::GET | Method::HEAD)) else {
        return nobody;
    };
    match platform::tcp_peer(client.from, to) {
        TcpPeer::Process(pid) => {
            RequestCaller { peer: Some(Peer { uid: rustix::process::geteuid().as_raw(), pid: Some(pid) }), ..nobody }
        }
        TcpPeer::Hidden => nobody,
        TcpPeer::Gone => RequestCaller { peer_gone: true, ..nobody },
    }
}

fn forbidden(message: &str, hint: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, message).with_hint(hint)
}
