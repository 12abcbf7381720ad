use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use super::find::find;
use super::process::{Ended, Process};
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;

const GONE_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn run() -> Result<Exit, CliError> {
    match stop(&Daemon::from_env()?).await? {
        Some(pid) => output::print(&format!("the daemon (pid {}) has ended\n", pid.as_raw_nonzero()))?,
        None => output::print("no daemon runs\n")?,
    }
    Ok(Exit::Ok)
}

/// Returns once it is gone: who it was, or `None` when there was none.
pub(super) async fn stop(daemon: &Daemon) -> Result<Option<Pid>, CliError> {
    let Some(pid) = find(daemon).await? else { return Ok(None) };
    if pid == Pid::INIT || pid == rustix::process::getpid() {
        let message =
            Message::new(format!("pid {} holds the daemon's socket, which is no daemon", pid.as_raw_nonzero()));
        return Err(CliError::failed(message.because("it was left alone")));
    }
    let process = match Process::open(pid) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(Some(pid)),
        Err(error) => return Err(refused(pid, error)),
    };
    // The number may have changed hands before it was pinned down.
    if find(daemon).await? != Some(pid) {
        return Ok(Some(pid));
    }
    match process.terminate() {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(refused(pid, error)),
    }
    match process.wait(GONE_WITHIN) {
        Ok(Ended::Yes) => Ok(Some(pid)),
        Ok(Ended::NotYet) => Err(still_there(pid)),
        Err(error) => Err(refused(pid, error)),
    }
}

fn refused(pid: Pid, error: Errno) -> CliError {
    CliError::io(&format!("stop the daemon (pid {})", pid.as_raw_nonzero()), error)
}

fn still_there(pid: Pid) -> CliError {
    let pid = pid.as_raw_nonzero();
    let message = Message::new(format!("the daemon (pid {pid}) was told to end and is still there"))
        .because(format!("it usually takes a moment; {} s have passed", GONE_WITHIN.as_secs()))
        .hint("agtmux daemon logs")
        .hint(format!("kill -9 {pid}   (its files survive that)"));
    CliError::failed(message)
}
