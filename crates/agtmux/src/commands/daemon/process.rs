//! Ends a process without the risk of signalling another process that reuses its pid.

use std::time::Duration;

use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(super) use linux::DaemonProcess;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::PolledProcess as DaemonProcess;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProcessWait {
    Ended,
    StillRunning,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Duration, Pid, ProcessWait};

    pub(in super::super) struct DaemonProcess(OwnedFd);

    impl DaemonProcess {
        pub(in super::super) fn open(pid: Pid) -> rustix::io::Result<Self> {
            pidfd_open(pid, PidfdFlags::empty()).map(Self)
        }

        pub(in super::super) fn terminate(&self) -> rustix::io::Result<()> {
            pidfd_send_signal(&self.0, Signal::TERM)
        }

        pub(in super::super) fn wait(&self, within: Duration) -> rustix::io::Result<ProcessWait> {
            let timeout = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            Ok(if poll(&mut fds, Some(&timeout))? > 0 { ProcessWait::Ended } else { ProcessWait::StillRunning })
        }
    }
}

#[cfg(any(not(target_os = "linux"), test))]
mod portable {
    use std::time::Instant;

    use rustix::process::{Signal, kill_process, test_kill_process};

    use super::{Duration, Pid, ProcessWait};

    const POLL_INTERVAL: Duration = Duration::from_millis(20);

    pub(in super::super) struct PolledProcess(Pid);

    impl PolledProcess {
        pub(in super::super) fn open(pid: Pid) -> rustix::io::Result<Self> {
            test_kill_process(pid).map(|()| Self(pid))
        }

        pub(in super::super) fn terminate(&self) -> rustix::io::Result<()> {
            kill_process(self.0, Signal::TERM)
        }

        pub(in super::super) fn wait(&self, within: Duration) -> rustix::io::Result<ProcessWait> {
            let deadline = Instant::now() + within;
            while test_kill_process(self.0).is_ok() {
                if Instant::now() >= deadline {
                    return Ok(ProcessWait::StillRunning);
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            Ok(ProcessWait::Ended)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_implementations_end_a_process_and_detect_its_end() {
        let sleeper = || Command::new("sleep").arg("60").spawn().expect("sleep runs");
        let mut child = sleeper();
        let process = DaemonProcess::open(Pid::from_child(&child)).expect("alive");
        assert_eq!(process.wait(Duration::from_millis(1)).expect("no error"), ProcessWait::StillRunning);
        process.terminate().expect("signalled");
        assert_eq!(process.wait(Duration::from_secs(10)).expect("no error"), ProcessWait::Ended);
        child.wait().expect("reaped");

        let mut child = sleeper();
        let process = portable::PolledProcess::open(Pid::from_child(&child)).expect("alive");
        assert_eq!(process.wait(Duration::from_millis(1)).expect("no error"), ProcessWait::StillRunning);
        process.terminate().expect("signalled");
        child.wait().expect("reaped");
        assert_eq!(process.wait(Duration::from_secs(10)).expect("no error"), ProcessWait::Ended);
    }
}
