use std::time::Duration;

use agtmux_client::DaemonClient;
use rustix::io::Errno;
use rustix::process::Pid;

use super::find::find;
use super::process::{DaemonProcess, ProcessWait};
use crate::error::{CliError, CliResult};
use crate::output;

const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn run() -> CliResult {
    match stop(&DaemonClient::from_env()?).await? {
        Some(pid) => output::print(&format!("the daemon (pid {}) has stopped\n", pid.as_raw_nonzero()))?,
        None => output::print("the daemon is not running\n")?,
    }
    Ok(())
}

/// Stops the daemon and waits until it has exited. Returns its pid, or `None` if no daemon was running.
pub(super) async fn stop(daemon: &DaemonClient) -> CliResult<Option<Pid>> {
    let Some(pid) = find(daemon).await? else { return Ok(None) };
    if pid == Pid::INIT || pid == rustix::process::getpid() {
        return Err(CliError::failed(format!(
            "pid {} holds the daemon's socket but is not a daemon",
            pid.as_raw_nonzero()
        ))
        .because("it was not stopped"));
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
