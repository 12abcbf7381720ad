//! The way to the daemon. Whoever needs it starts it, as tmux does with its server.

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

/// What a detached daemon says on stdout to the one who started it.
pub(crate) const READY: &str = "ready";
pub(crate) const ALREADY_RUNNING: &str = "already running";

const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the holder of the lock gets to open its socket before it is taken for one that is about to end.
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

    /// The answer as it came, from a daemon that is started when there is none.
    pub(crate) async fn get_bytes(&self, path: &str, query: &impl Serialize) -> Result<Bytes, CliError> {
        match self.client.get_bytes(path, query).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.get_bytes(path, query).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends a body and gives back the answer as it came.
    pub(crate) async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, CliError> {
        match self.client.post_bytes(path, body.clone()).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.post_bytes(path, body).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Asks for something to be done and gives back the answer as it came.
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

    /// Takes something away and gives back the answer as it came.
    pub(crate) async fn delete(&self, path: &str) -> Result<Bytes, CliError> {
        match self.client.delete(path).await {
            Err(ClientError::NotRunning(_)) => {
                self.autostart().await?;
                Ok(self.client.delete(path).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// For what takes the daemon a while to find out.
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
            let message = CliMessage::new(format!("no daemon listens on '{}'", self.paths.socket.display()))
                .because("AGTMUX_NO_AUTOSTART is set, so none was started")
                .hint("agtmux daemon start");
            return Err(CliError::new(CliExit::NoDaemon, message));
        }
        self.start().await
    }

    /// Returns when a daemon serves, whoever started it.
    pub(crate) async fn start(&self) -> Result<(), CliError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match spawn(deadline).await? {
                SpawnOutcome::Ready => return Ok(()),
                // Someone else holds the lock: it opens its socket soon, or it is on its way out.
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

    /// Waits for somebody to listen.
    pub(crate) async fn wait_until_listening(&self, deadline: Instant) -> bool {
        loop {
            match self.client.connect().await {
                Err(ClientError::NotRunning(_)) if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                Err(ClientError::NotRunning(_)) => return false,
                // Any other fault is told by the request that follows.
                _ => return true,
            }
        }
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CliError> {
    let broken = |error| ClientError::Broken(format!("unreadable answer: {error}"));
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

/// The daemon ended before it served; it has said why.
async fn startup_error(mut child: Child, deadline: Instant) -> CliError {
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // It may be cut short, but what came is still worth showing.
        let _ = timeout_at(deadline, stderr.read_to_string(&mut said)).await;
    }
    let status = timeout_at(deadline, child.wait()).await.ok().and_then(Result::ok);
    let exit = match status.and_then(|status| status.code()) {
        Some(code) if code == i32::from(CliExit::Usage as u8) => CliExit::Usage,
        _ => CliExit::Failed,
    };
    let message =
        CliMessage::new("the daemon could not be started").because(said.trim().trim_start_matches("agtmux: "));
    CliError::new(exit, message.hint("agtmux daemon run   (in the foreground, to see what it does)"))
}

fn start_timeout() -> CliError {
    let message = CliMessage::new(format!("the daemon did not get ready within {} s", START_TIMEOUT.as_secs()))
        .hint("agtmux daemon logs")
        .hint("agtmux daemon status");
    CliError::new(CliExit::NoDaemon, message)
}
