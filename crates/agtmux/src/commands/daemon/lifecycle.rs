//! Starts, stops and restarts the daemon.

use std::time::Duration;

use agtmux_api::config::Config;
use agtmux_client::{ClientError, DaemonClient};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::time::{Instant, sleep};

use super::find::find;
use super::process::{DaemonProcess, ProcessWait};
use crate::error::{CliError, CliResult};
use crate::output;

const BROKEN_RETRY_FOR: Duration = Duration::from_secs(1);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn start() -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let was_running = answers(&daemon).await;
    if !was_running {
        daemon.start().await?;
    }
    let running = if was_running { "already running" } else { "running" };
    output::line(&format!("the daemon is {running}{}", pid(&daemon).await))
}

pub(super) async fn stop() -> CliResult {
    match stop_daemon(&DaemonClient::from_env()?).await? {
        Some(pid) => output::line(&format!("the daemon (pid {}) has stopped", pid.as_raw_nonzero())),
        None => output::line("the daemon is not running"),
    }
}

pub(super) async fn restart() -> CliResult {
    let daemon = DaemonClient::from_env()?;
    // Check what the new daemon needs before the running one is stopped.
    check_settings(&daemon)?;
    let before = stop_daemon(&daemon).await?;
    daemon.start().await?;
    let what = if before.is_some() { "restarted" } else { "started; it was not running before" };
    output::line(&format!("the daemon was {what}"))
}

/// Fails if the current settings would prevent a new daemon from starting.
fn check_settings(daemon: &DaemonClient) -> CliResult {
    let kept = "agtmux stopped nothing";
    Config::load(&daemon.paths.config).map_err(|error| CliError::from(error).because(kept))?;
    daemon.paths.prepare().map_err(|error| CliError::from(error).because(kept))
}

/// Whether a daemon answers. An open socket is no proof: after the daemon was killed, a child process between fork and
/// exec can still hold the socket. Connections then succeed but are never answered.
async fn answers(daemon: &DaemonClient) -> bool {
    let patience = Instant::now() + BROKEN_RETRY_FOR;
    loop {
        match daemon.api.get_bytes("/v1/health", &()).await {
            Err(ClientError::NotRunning(_)) => return false,
            Err(ClientError::Broken(_)) if Instant::now() < patience => sleep(RETRY_PAUSE).await,
            Err(ClientError::Broken(_)) => return false,
            // A daemon with another version, or one that hangs, is running too.
            _ => return true,
        }
    }
}

async fn pid(daemon: &DaemonClient) -> String {
    find(daemon).await.ok().flatten().map(|pid| format!(" (pid {})", pid.as_raw_nonzero())).unwrap_or_default()
}

/// Stops the daemon and waits until it has exited. Returns its pid, or `None` if no daemon was running.
async fn stop_daemon(daemon: &DaemonClient) -> CliResult<Option<Pid>> {
    let Some(pid) = find(daemon).await? else { return Ok(None) };
    if pid == Pid::INIT || pid == rustix::process::getpid() {
        return Err(CliError::failed(format!(
            "pid {} holds the daemon's socket but is not a daemon",
            pid.as_raw_nonzero()
        ))
        .because("agtmux left this process running"));
    }
    let process = match DaemonProcess::open(pid) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(Some(pid)),
        Err(error) => return Err(stop_error(pid, error)),
    };
    // The pid may have been reused before the process was opened.
    if find(daemon).await? != Some(pid) {
        return Ok(Some(pid));
    }
    match process.terminate() {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(stop_error(pid, error)),
    }
    match process.wait(STOP_TIMEOUT) {
        Ok(ProcessWait::Ended) => Ok(Some(pid)),
        Ok(ProcessWait::StillRunning) => Err(stop_timeout_error(pid)),
        Err(error) => Err(stop_error(pid, error)),
    }
}

fn stop_error(pid: Pid, error: Errno) -> CliError {
    CliError::io(&format!("stop the daemon (pid {})", pid.as_raw_nonzero()), error)
}

fn stop_timeout_error(pid: Pid) -> CliError {
    let pid = pid.as_raw_nonzero();
    CliError::failed(format!("the daemon (pid {pid}) did not stop"))
        .because(format!("it is still running {} s after SIGTERM", STOP_TIMEOUT.as_secs()))
        .hint("agtmux daemon logs")
        .hint(format!("kill -9 {pid}   (the database stays intact)"))
}
