use std::io;

use rustix::process::{Pid, Signal};

use super::ProcessTable;

/// Sends TERM, or KILL, to this process and to no other that has got its number since. False if it has ended.
pub fn strike(table: &dyn ProcessTable, pid: u32, start: u64, kill: bool) -> io::Result<bool> {
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    let Some(raw) = raw else { return Err(io::ErrorKind::InvalidInput.into()) };
    let is_it = || table.start_time(pid) == Some(start);
    match send(raw, signal, is_it) {
        Err(rustix::io::Errno::SRCH) => Ok(false),
        sent => Ok(sent?),
    }
}

/// Held first, looked at then: what is held keeps its number.
#[cfg(target_os = "linux")]
fn send(pid: Pid, signal: Signal, is_it: impl Fn() -> bool) -> rustix::io::Result<bool> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let held = pidfd_open(pid, PidfdFlags::empty())?;
    if !is_it() {
        return Ok(false);
    }
    pidfd_send_signal(&held, signal).map(|()| true)
}

#[cfg(not(target_os = "linux"))]
fn send(pid: Pid, signal: Signal, is_it: impl Fn() -> bool) -> rustix::io::Result<bool> {
    if !is_it() {
        return Ok(false);
    }
    rustix::process::kill_process(pid, signal).map(|()| true)
}
