use std::path::PathBuf;

use agtmux_api::paths::Paths;
use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api_client::{ACTION_TIMEOUT, RESPONSE_TIMEOUT};
use crate::error::broken;
use crate::{ApiClient, ClientError, LineStream};

/// A client that starts the daemon if a request finds no running daemon, just as the `tmux` command starts its server.
#[derive(Debug, Clone)]
pub struct DaemonClient {
    pub paths: Paths,
    /// Sends requests and never starts the daemon.
    pub api: ApiClient,
    /// The agtmux program to start as the daemon. If `None`, the client starts the program that the current process
    /// runs.
    pub program: Option<PathBuf>,
}

impl DaemonClient {
    pub fn new(paths: Paths) -> Self {
        let api = ApiClient::new(paths.socket.clone());
        Self { paths, api, program: None }
    }

    /// Creates a client of the current user's daemon. The paths of the daemon's socket and files come from environment
    /// variables.
    pub fn from_env() -> Result<Self, ClientError> {
        Ok(Self::new(Paths::from_env()?))
    }

    /// The same client under this name in the audit log.
    #[must_use]
    pub fn named(&self, client: &str) -> Self {
        Self { api: self.api.named(client), ..self.clone() }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, ClientError> {
        parse(&self.get_bytes(path, query).await?)
    }

    /// Sends a GET request and returns the body of the response.
    pub async fn get_bytes(&self, path: &str, query: &impl Serialize) -> Result<Bytes, ClientError> {
        self.retry_started(|| self.api.get_bytes(path, query)).await
    }

    /// Like `get_bytes`, with a long timeout.
    pub async fn get_slow(&self, path: &str) -> Result<Bytes, ClientError> {
        self.retry_started(|| self.api.send(Method::GET, path, Bytes::new(), ACTION_TIMEOUT)).await
    }

    pub async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        self.retry_started(|| self.api.send(Method::POST, path, body.clone(), RESPONSE_TIMEOUT)).await
    }

    /// Sends an action and returns the body of the response.
    pub async fn act(&self, path: &str, request: &impl Serialize) -> Result<Bytes, ClientError> {
        let body = Bytes::from(serde_json::to_vec(request).map_err(broken)?);
        self.retry_started(|| self.api.post_action(path, body.clone())).await
    }

    pub async fn delete(&self, path: &str) -> Result<Bytes, ClientError> {
        self.retry_started(|| self.api.send(Method::DELETE, path, Bytes::new(), ACTION_TIMEOUT)).await
    }

    /// Opens a stream of lines.
    pub async fn lines(&self, path: &str) -> Result<LineStream, ClientError> {
        self.retry_started(|| self.api.lines(path)).await
    }

    /// Sends a request. If no daemon is running, starts one and sends the request again.
    pub(crate) async fn retry_started<T, F: Future<Output = Result<T, ClientError>>>(
        &self,
        send: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        match send().await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                send().await
            }
            answer => answer,
        }
    }
}

/// Parses the body of a response.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(bytes).map_err(|error| broken(format!("invalid response: {error}")))
}
