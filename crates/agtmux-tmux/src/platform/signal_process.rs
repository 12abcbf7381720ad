use std::io;

use rustix::process::{Pid, Signal};

use super::ProcessTable;

/// Sends TERM, or KILL, to this process and to no other that has got its number since. False if it has ended.
pub fn signal_process(table: &dyn ProcessTable, pid: u32, start: u64, kill: bool) -> io::Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::process_table;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("sleep can be started")
    }

    #[test]
    fn another_process_of_the_same_number_is_not_struck() {
        let (mut other, table) = (sleeper(), process_table(false));
        let start = table.start_time(other.id()).expect("it lives");
        for wrong in [start + 1, start - 1, 0] {
            assert!(!signal_process(&*table, other.id(), wrong, true).expect("asked"), "{wrong}");
        }
        assert!(other.try_wait().expect("a child").is_none(), "it was struck");
        assert!(signal_process(&*table, other.id(), start, true).expect("asked"));
        assert_eq!(other.wait().expect("a child").signal(), Some(9));
        assert!(!signal_process(&*table, other.id(), start, true).expect("asked"), "it has ended");
    }

    #[test]
    fn it_can_be_asked_to_end() {
        let (mut child, table) = (sleeper(), process_table(false));
        let start = table.start_time(child.id()).expect("it lives");
        assert!(signal_process(&*table, child.id(), start, false).expect("asked"));
        assert_eq!(child.wait().expect("a child").signal(), Some(15));
    }

    #[test]
    fn neither_everybody_nor_the_first_process_can_be_named() {
        let table = process_table(false);
        for pid in [0, 1, u32::MAX] {
            assert!(signal_process(&*table, pid, 0, true).is_err(), "{pid}");
        }
    }
}
