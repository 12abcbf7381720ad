//! The connection to the daemon. A command that needs the daemon starts it, as tmux does with its server.

use std::process::Stdio;
use std::time::Duration;

use agtmux_api::client::{ApiClient, ClientError};
use agtmux_api::paths::Paths;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;

/// The words that a detached daemon prints on stdout for the process that started it.
pub(crate) const READY: &str = "ready";
pub(crate) const ALREADY_RUNNING: &str = "already running";

const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for the daemon that holds the lock to open its socket. After that it is assumed to be exiting.
const OTHER_OPENS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(crate) struct DaemonClient {
    pub(crate) paths: Paths,
    pub(crate) client: ApiClient,
}

impl DaemonClient {
    pub(crate) fn from_env() -> Result<Self, CliError> {
        let paths = Paths::from_env()?;
        let client = ApiClient::new(paths.socket.clone());
        Ok(Self { paths, client })
    }

    /// Sends a GET request and returns the body. Starts the daemon if it is not running.
    pub(crate) async fn get_bytes(&self, path: &str, query: &impl Serialize) -> Result<Bytes, CliError> {
        match self.client.get_bytes(path, query).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.get_bytes(path, query).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends a POST request and returns the body of the answer.
    pub(crate) async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, CliError> {
        match self.client.post_bytes(path, body.clone()).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.post_bytes(path, body).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends an action and returns the body of the answer.
    pub(crate) async fn act(&self, path: &str, request: &impl Serialize) -> Result<Bytes, CliError> {
        let body = Bytes::from(serde_json::to_vec(request).map_err(|error| CliError::io("write JSON", error))?);
        match self.client.post_action(path, body.clone()).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.post_action(path, body).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends a DELETE request and returns the body of the answer.
    pub(crate) async fn delete(&self, path: &str) -> Result<Bytes, CliError> {
        match self.client.delete(path).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.delete(path).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends a GET request with a long timeout.
    pub(crate) async fn get_slow(&self, path: &str) -> Result<Bytes, CliError> {
        match self.client.get_slow(path).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.get_slow(path).await?)
            }
            answer => Ok(answer?),
        }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, CliError> {
        parse(&self.get_bytes(path, query).await?)
    }

    pub(crate) async fn autostart(&self) -> Result<(), CliError> {
        if autostart_forbidden() {
            let message = CliMessage::new(format!(
                "the daemon is not running: nothing listens on '{}'",
                self.paths.socket.display()
            ))
            .because("AGTMUX_NO_AUTOSTART is set, so agtmux did not start it")
            .hint("agtmux daemon start");
            return Err(CliError::new(CliExit::NoDaemon, message));
        }
        self.start().await
    }

    /// Returns when a daemon serves requests, whether this process or another one started it.
    pub(crate) async fn start(&self) -> Result<(), CliError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match spawn(deadline).await? {
                SpawnOutcome::Ready => return Ok(()),
                // Another daemon holds the lock. It opens its socket soon, or it is exiting.
                SpawnOutcome::AlreadyStarting => {
                    let patience = deadline.min(Instant::now() + OTHER_OPENS_WITHIN);
                    if self.wait_until_listening(patience).await {
                        return Ok(());
                    }
                }
            }
            if Instant::now() >= deadline {
                return Err(start_timeout());
            }
        }
    }

    /// Waits until a daemon listens on the socket. Returns false at the deadline.
    pub(crate) async fn wait_until_listening(&self, deadline: Instant) -> bool {
        loop {
            match self.client.connect().await {
                Err(ClientError::NotRunning(_)) if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                Err(ClientError::NotRunning(_)) => return false,
                // The next request reports any other error.
                _ => return true,
            }
        }
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CliError> {
    let broken = |error| ClientError::Broken(format!("invalid response: {error}"));
    Ok(serde_json::from_slice(bytes).map_err(broken)?)
}

fn autostart_forbidden() -> bool {
    std::env::var_os("AGTMUX_NO_AUTOSTART").is_some_and(|value| !value.is_empty() && value != "0")
}

enum SpawnOutcome {
    Ready,
    AlreadyStarting,
}

async fn spawn(deadline: Instant) -> Result<SpawnOutcome, CliError> {
    let exe = std::env::current_exe().map_err(|error| CliError::io("find the agtmux program", error))?;
    let mut child = Command::new(&exe)
        .args(["daemon", "run", "--detached"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| CliError::io(&format!("start '{}'", exe.display()), error))?;
    match timeout_at(deadline, read_first_line(&mut child)).await {
        Err(_) => Err(start_timeout()),
        Ok(Some(word)) if word == READY => Ok(SpawnOutcome::Ready),
        Ok(Some(word)) if word == ALREADY_RUNNING => Ok(SpawnOutcome::AlreadyStarting),
        Ok(_) => Err(startup_error(child, deadline).await),
    }
}

async fn read_first_line(child: &mut Child) -> Option<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).await.ok()?;
    Some(line.trim_end().to_owned())
}

/// The error for a daemon that exited before it was ready, with what it wrote to stderr.
async fn startup_error(mut child: Child, deadline: Instant) -> CliError {
    let mut stderr_text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // The text may be incomplete at the deadline; print what was read.
        let _ = timeout_at(deadline, stderr.read_to_string(&mut stderr_text)).await;
    }
    let status = timeout_at(deadline, child.wait()).await.ok().and_then(Result::ok);
    let exit = match status.and_then(|status| status.code()) {
        Some(code) if code == i32::from(CliExit::Usage as u8) => CliExit::Usage,
        _ => CliExit::Failed,
    };
    let message = CliMessage::new("cannot start the daemon").because(stderr_text.trim().trim_start_matches("agtmux: "));
    CliError::new(exit, message.hint("agtmux daemon run   (in the foreground, with its log)"))
}

fn start_timeout() -> CliError {
    let message = CliMessage::new(format!("the daemon was not ready after {} s", START_TIMEOUT.as_secs()))
        .hint("agtmux daemon logs")
        .hint("agtmux daemon status");
    CliError::new(CliExit::NoDaemon, message)
}
