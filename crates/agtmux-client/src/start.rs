//! Starts the daemon and waits until it is ready.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{ClientError, DaemonClient};

/// A daemon that was started with `--detached` prints [`READY`] or [`ALREADY_RUNNING`] on stdout. The process that
/// started it reads this line.
pub const READY: &str = "ready";
pub const ALREADY_RUNNING: &str = "already running";

const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait until another daemon, which holds the lock, opens its socket. If the other daemon does not open its
/// socket in time, the client assumes that the other daemon is exiting, and tries again to start a daemon.
const OTHER_OPENS_WITHIN: Duration = Duration::from_secs(1);

enum SpawnOutcome {
    Ready,
    AlreadyStarting,
}

impl DaemonClient {
    /// Starts the daemon unless `AGTMUX_NO_AUTOSTART` is set.
    pub(crate) async fn autostart(&self) -> Result<(), ClientError> {
        let forbidden = std::env::var_os("AGTMUX_NO_AUTOSTART").is_some_and(|value| !value.is_empty() && value != "0");
        if forbidden { Err(ClientError::AutostartForbidden(self.paths.socket.clone())) } else { self.start().await }
    }

    /// Starts the daemon and returns when it serves requests. If another process has started the daemon first, waits
    /// for that daemon instead.
    pub async fn start(&self) -> Result<(), ClientError> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.spawn(deadline).await? {
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
                return Err(ClientError::StartTimeout(START_TIMEOUT));
            }
        }
    }

    /// Waits until a daemon listens on the socket. Returns false if none listens by the deadline.
    pub(crate) async fn wait_until_listening(&self, deadline: Instant) -> bool {
        loop {
            match self.api.connect().await {
                Err(ClientError::NotRunning(_)) if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                Err(ClientError::NotRunning(_)) => return false,
                // The next request reports any other error.
                _ => return true,
            }
        }
    }

    async fn spawn(&self, deadline: Instant) -> Result<SpawnOutcome, ClientError> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(ClientError::NoProgram)?,
        };
        let mut child = Command::new(&program)
            .args(["daemon", "run", "--detached"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| ClientError::Spawn { program, source })?;
        match timeout_at(deadline, read_first_line(&mut child)).await {
            Err(_) => Err(ClientError::StartTimeout(START_TIMEOUT)),
            Ok(Some(word)) if word == READY => Ok(SpawnOutcome::Ready),
            Ok(Some(word)) if word == ALREADY_RUNNING => Ok(SpawnOutcome::AlreadyStarting),
            Ok(_) => Err(startup_error(child, deadline).await),
        }
    }
}

async fn read_first_line(child: &mut Child) -> Option<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).await.ok()?;
    Some(line.trim_end().to_owned())
}

/// Builds the error for a daemon that exited before it was ready. The error contains the daemon's stderr.
async fn startup_error(mut child: Child, deadline: Instant) -> ClientError {
    let mut text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // The text may be incomplete at the deadline; report what was read.
        let _ = timeout_at(deadline, stderr.read_to_string(&mut text)).await;
    }
    let status = timeout_at(deadline, child.wait()).await.ok().and_then(Result::ok);
    ClientError::StartFailed { stderr: text, exit_code: status.and_then(|status| status.code()) }
}
