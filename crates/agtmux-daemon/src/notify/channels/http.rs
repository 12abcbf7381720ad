//! The channels `webhook` and `ntfy`. `http://` is sent with the HTTP library of the daemon. `https://` is sent with the
//! program curl: a TLS library would make the executable larger and every build slower, for optional channels only.

use agtmux_api::config::NotifyConfig;
use agtmux_api::wire::{Notice, NoticeKind};
use agtmux_core::state::State;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::DeliveryResult;
use super::curl;
use super::program::document;

/// The most bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// A request with a body of JSON, or without a body.
pub(super) struct JsonRequest {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) body: Option<String>,
}

pub(super) async fn post_webhook(config: &NotifyConfig, notice: &Notice) -> DeliveryResult {
    let token = read_token(&config.webhook_token_file).await?;
    let body = Some(document(notice)?);
    send(JsonRequest { method: Method::POST, url: config.webhook_url.clone(), token, body }).await
}

/// Publishes the notice. Its id is the sequence id, so that the server can withdraw it.
pub(super) async fn post_to_ntfy(config: &NotifyConfig, notice: &Notice) -> DeliveryResult {
    let token = read_token(&config.ntfy_token_file).await?;
    let body = Some(ntfy_message(&config.ntfy_topic, notice).to_string());
    let url = ntfy_root(config).to_owned() + "/";
    send(JsonRequest { method: Method::POST, url, token, body }).await
}

pub(super) async fn delete_from_ntfy(config: &NotifyConfig, notice_id: &str) -> DeliveryResult {
    let token = read_token(&config.ntfy_token_file).await?;
    let url = format!("{}/{}/{notice_id}", ntfy_root(config), config.ntfy_topic);
    send(JsonRequest { method: Method::DELETE, url, token, body: None }).await
}

fn ntfy_root(config: &NotifyConfig) -> &str {
    config.ntfy_url.trim_end_matches('/')
}

fn ntfy_message(topic: &str, notice: &Notice) -> Value {
    let is_urgent = notice.escalated || notice.agents.iter().any(|agent| agent.state.needs_action());
    let tag = match (notice.kind, notice.agents.first().map(|agent| agent.state)) {
        (NoticeKind::Notify, Some(State::Error)) => "x",
        (NoticeKind::Notify, Some(State::Completed)) => "white_check_mark",
        _ => "robot",
    };
    json!({
        "topic": topic,
        "title": notice.title,
        "message": notice.text,
        "priority": if is_urgent { 4 } else { 3 },
        "tags": [tag],
        "sequence_id": notice.notice_id,
    })
}

/// Reads a token from its file for every notice, so that a new token needs no restart.
async fn read_token(path: &str) -> Result<Option<String>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read '{path}': {error}"))
    });
    let token = read.await.map_err(|error| error.to_string())??.trim().to_owned();
    let is_token = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    is_token.then_some(Some(token)).ok_or_else(|| "the token file does not contain one word".into())
}

async fn send(request: JsonRequest) -> DeliveryResult {
    match request.url.starts_with("https://") {
        true => curl::send(&request).await,
        false => send_plain(request).await,
    }
}

/// Sends the request without encryption.
async fn send_plain(request: JsonRequest) -> DeliveryResult {
    let uri: Uri = request.url.parse().map_err(|_| "the URL is not valid".to_owned())?;
    let host = uri.host().ok_or("the URL has no host")?.trim_matches(['[', ']']).to_owned();
    let authority = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let failed = |error: &dyn std::fmt::Display| format!("'{host}' cannot be reached: {error}");
    let stream = TcpStream::connect((host.as_str(), uri.port_u16().unwrap_or(80))).await.map_err(|e| failed(&e))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut builder = Request::builder().method(request.method).uri(path).header("host", authority);
    if let Some(token) = request.token {
        builder = builder.header("authorization", format!("Bearer {token}"));
    }
    if request.body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    let body = Full::new(Bytes::from(request.body.unwrap_or_default()));
    let message = builder.body(body).map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(message).await.map_err(|e| failed(&e))?;
        let status = response.status();
        // Read the answer, so that the server does not see a broken connection.
        let _ = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        if status.is_success() { Ok(()) } else { Err(format!("'{host}' answered {status}")) }
    };
    tokio::select! {
        // The connection works only while it is polled. It ends when the exchange drops its sender.
        done = exchange => done,
        Err(error) = connection => Err(failed(&error)),
    }
}
