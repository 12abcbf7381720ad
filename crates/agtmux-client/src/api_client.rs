use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use agtmux_api::{API_HEADER, API_VERSION, CLIENT_HEADER, TMUX_HEADER, TMUX_TMPDIR_HEADER, VERSION_HEADER};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::UnixStream;

use crate::error::broken;
use crate::{ClientError, EventStream, LineStream};

/// How long to wait for a response. A healthy daemon needs much less time.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const ACTION_TIMEOUT: Duration = Duration::from_secs(120);

static OTHER_VERSION: OnceLock<String> = OnceLock::new();

/// The version of the daemon, if it differs from the version of this program. Taken from the first response with
/// another version. The API version is the same on both sides.
pub fn other_daemon_version() -> Option<&'static str> {
    OTHER_VERSION.get().map(String::as_str)
}

/// Sends requests to the daemon that listens on one unix socket. Never starts a daemon.
#[derive(Debug, Clone)]
pub struct ApiClient {
    socket: PathBuf,
    /// The name of this client in the audit log.
    client: Option<String>,
}

impl ApiClient {
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), client: None }
    }

    /// The same client under this name in the audit log. A name that is not a valid header value is left out.
    #[must_use]
    pub fn named(&self, client: &str) -> Self {
        let is_valid = !client.is_empty() && client.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        Self { client: is_valid.then(|| client.to_owned()), ..self.clone() }
    }

    /// Returns the raw response body.
    pub async fn get_bytes(&self, path: &str, query: &impl Serialize) -> Result<Bytes, ClientError> {
        self.send(Method::GET, &with_query(path, query)?, Bytes::new(), RESPONSE_TIMEOUT).await
    }

    /// Requests an action. Uses the long timeout, because the action may wait for other actions on the same pane and
    /// for the agent in the pane.
    pub async fn post_action(&self, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        self.send(Method::POST, path, body, ACTION_TIMEOUT).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        uri: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, ClientError> {
        let answer = async {
            let response = self.request(method, uri, body, "application/json", None).await?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
            if status.is_success() { Ok(body) } else { Err(refusal(status, &body)) }
        };
        tokio::time::timeout(within, answer).await.map_err(|_| ClientError::Timeout(within))?
    }

    /// Opens a stream of events. With `after`, the stream starts after the event with this id.
    pub async fn events(
        &self,
        path: &str,
        query: &impl Serialize,
        after: Option<u64>,
    ) -> Result<EventStream, ClientError> {
        Ok(EventStream(LineStream::new(self.open(&with_query(path, query)?, "text/event-stream", after).await?)))
    }

    /// Opens a stream of lines.
    pub async fn lines(&self, path: &str) -> Result<LineStream, ClientError> {
        Ok(LineStream::new(self.open(path, "application/x-ndjson", None).await?))
    }

    async fn open(&self, uri: &str, accept: &str, after: Option<u64>) -> Result<Incoming, ClientError> {
        let request = self.request(Method::GET, uri, Bytes::new(), accept, after);
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, request)
            .await
            .map_err(|_| ClientError::Timeout(RESPONSE_TIMEOUT))??;
        let status = response.status();
        if !status.is_success() {
            let body = response.into_body().collect().await.map_err(broken)?.to_bytes();
            return Err(refusal(status, &body));
        }
        Ok(response.into_body())
    }

    async fn request(
        &self,
        method: Method,
        uri: &str,
        body: Bytes,
        accept: &str,
        after: Option<u64>,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = self.connect().await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // This tokio task ends when the response has been read or the sender is dropped.
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "agtmux")
            .header("content-type", "application/json")
            .header("accept", accept);
        for (header, variable) in [(TMUX_HEADER, "TMUX"), (TMUX_TMPDIR_HEADER, "TMUX_TMPDIR")] {
            if let Some(value) = std::env::var(variable).ok().filter(|v| !v.is_empty()) {
                request = request.header(header, value);
            }
        }
        if let Some(client) = &self.client {
            request = request.header(CLIENT_HEADER, client);
        }
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Full::new(body)).map_err(broken)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        check_version(&response)?;
        Ok(response)
    }

    /// Connects to the socket and checks that the daemon belongs to the current user.
    pub async fn connect(&self) -> Result<UnixStream, ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning(self.socket.clone())
            }
            _ => ClientError::Connect { socket: self.socket.clone(), source },
        })?;
        let owner = stream.peer_cred().map_err(broken)?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            return Err(ClientError::OtherUser(self.socket.clone()));
        }
        Ok(stream)
    }
}

fn with_query(path: &str, query: &impl Serialize) -> Result<String, ClientError> {
    let query = encode_query(&serde_json::to_value(query).map_err(broken)?)?;
    Ok(if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") })
}

/// Encodes the fields of an object as a query string. Fields that are null are left out.
fn encode_query(fields: &serde_json::Value) -> Result<String, ClientError> {
    use serde_json::Value;
    let mut query = form_urlencoded::Serializer::new(String::new());
    let fields = match fields {
        Value::Null => return Ok(String::new()),
        Value::Object(fields) => fields,
        other => return Err(broken(format!("a query must be an object, not {other}"))),
    };
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) => drop(query.append_pair(name, text)),
            Value::Bool(_) | Value::Number(_) => drop(query.append_pair(name, &value.to_string())),
            Value::Array(_) | Value::Object(_) => {
                return Err(broken(format!("the query field '{name}' must be a single value, not {value}")));
            }
        }
    }
    Ok(query.finish())
}

fn check_version(response: &Response<Incoming>) -> Result<(), ClientError> {
    let header = |name| response.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or("unknown").to_owned();
    let (daemon, daemon_api) = (header(VERSION_HEADER), header(API_HEADER));
    if daemon_api != API_VERSION.to_string() {
        return Err(ClientError::Version { daemon, daemon_api });
    }
    if daemon != agtmux_api::VERSION {
        // Keep the version from the first response: a daemon that is started later may have another version.
        let _ = OTHER_VERSION.set(daemon);
    }
    Ok(())
}

fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice(body) {
        Ok(error) => ClientError::Refused(error),
        Err(_) => ClientError::Broken(format!("HTTP status {status} without an error message")),
    }
}
