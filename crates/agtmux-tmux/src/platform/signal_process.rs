use std::io;

use rustix::process::{Pid, Signal};

use super::ProcessTable;

/// Sends TERM or KILL to this process only. Returns false if the process has ended. Another process may have its pid
/// now.
pub fn signal_process(table: &dyn ProcessTable, pid: u32, start: u64, kill: bool) -> io::Result<bool> {
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    let raw = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    let Some(raw) = raw else { return Err(io::ErrorKind::InvalidInput.into()) };
    let is_same_process = || table.start_time(pid) == Some(start);
    match send(raw, signal, is_same_process) {
        Err(rustix::io::Errno::SRCH) => Ok(false),
        sent => Ok(sent?),
    }
}

/// Sends the signal. Opens a pidfd before the start time is checked. A pidfd always refers to the same process, so a
/// process that reuses the pid later cannot get the signal.
#[cfg(target_os = "linux")]
fn send(pid: Pid, signal: Signal, is_same_process: impl Fn() -> bool) -> rustix::io::Result<bool> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let held = pidfd_open(pid, PidfdFlags::empty())?;
    if !is_same_process() {
        return Ok(false);
    }
    pidfd_send_signal(&held, signal).map(|()| true)
}

#[cfg(not(target_os = "linux"))]
fn send(pid: Pid, signal: Signal, is_same_process: impl Fn() -> bool) -> rustix::io::Result<bool> {
    if !is_same_process() {
        return Ok(false);
    }
    rustix::process::kill_process(pid, signal).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::process_table;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("sleep starts")
    }

    #[test]
    fn a_reused_pid_is_not_signalled() {
        let (mut other, table) = (sleeper(), process_table(false));
        let start = table.start_time(other.id()).expect("the process runs");
        for wrong in [start + 1, start - 1, 0] {
            assert!(!signal_process(&*table, other.id(), wrong, true).expect("no I/O error"), "{wrong}");
        }
        assert!(other.try_wait().expect("a child").is_none(), "the other process was signalled");
        assert!(signal_process(&*table, other.id(), start, true).expect("no I/O error"));
        assert_eq!(other.wait().expect("a child").signal(), Some(9));
        assert!(!signal_process(&*table, other.id(), start, true).expect("no I/O error"), "it has ended");
    }

    #[test]
    fn term_is_sent_without_kill() {
        let (mut child, table) = (sleeper(), process_table(false));
        let start = table.start_time(child.id()).expect("the process runs");
        assert!(signal_process(&*table, child.id(), start, false).expect("no I/O error"));
        assert_eq!(child.wait().expect("a child").signal(), Some(15));
    }

    #[test]
    fn pids_zero_one_and_out_of_range_are_rejected() {
        let table = process_table(false);
        for pid in [0, 1, u32::MAX] {
            assert!(signal_process(&*table, pid, 0, true).is_err(), "{pid}");
        }
    }
}
