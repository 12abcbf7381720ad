//! Runs a child in the process group and the terminal of the wrapper, as if the shell had started the child itself.
//!
//! The wrapper blocks signals; it never ignores them and runs no handlers. The child starts with the original signal
//! mask. To stop or end like its child, the wrapper raises the same signal and unblocks it, so that the signal has its
//! default effect.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::process::exit;

use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, WaitOptions, setrlimit, waitpid};

use super::signals::{BlockedSignals, ReceivedSignal};
use super::spawn::spawn;
use crate::error::CliExit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    /// The signal that killed the child. It is stored as a number, because real-time signals have no name.
    Killed(i32),
}

pub(crate) struct ChildJob {
    child: Pid,
    signals: BlockedSignals,
    /// Whether this process has received SIGHUP, which means that the terminal is gone.
    hung_up: Cell<bool>,
}

impl ChildJob {
    pub(super) fn start(words: &[OsString]) -> io::Result<Self> {
        Self::start_with(words, std::env::vars_os())
    }

    /// Starts the program with exactly these environment variables.
    pub(crate) fn start_with(
        words: &[OsString],
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let (signals, usual) = BlockedSignals::block()?;
        match spawn(words, variables, &usual) {
            Ok(child) => Ok(Self { child, signals, hung_up: Cell::new(false) }),
            Err(error) => {
                usual.thread_set_mask()?;
                Err(error)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.as_raw().cast_unsigned()
    }

    /// Whether the terminal hung up before the child ended.
    pub(crate) fn was_hung_up(&self) -> bool {
        self.hung_up.get()
    }

    /// Returns when the child has ended.
    pub(crate) fn wait(&self) -> ChildEnd {
        loop {
            if let Some(end) = self.poll_child() {
                return end;
            }
            if let Some(received) = self.signals.next() {
                self.forward_signal(&received);
            }
        }
    }

    /// Handles every pending status change of the child. Returns how the child ended, or `None` if it has not ended.
    fn poll_child(&self) -> Option<ChildEnd> {
        let flags = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        let child = rustix::process::Pid::from_raw(self.child.as_raw());
        loop {
            match waitpid(child, flags) {
                Ok(Some((_, status))) => {
                    if let Some(code) = status.exit_status() {
                        return Some(ChildEnd::Exited(code));
                    } else if let Some(signal) = status.terminating_signal() {
                        return Some(ChildEnd::Killed(signal));
                    } else if let Some(Ok(signal)) = status.stopping_signal().map(Signal::try_from) {
                        self.stop_like_child(signal);
                    }
                }
                Ok(None) => return None,
                Err(Errno::INTR) => {}
                // Another waiter has reaped the child, so it has ended.
                Err(_) => return Some(ChildEnd::Exited(CliExit::Failed as i32)),
            }
        }
    }

    /// Forwards a signal to the child. If another process sent the signal, this process cannot tell whether the signal
    /// was sent to the whole group or only to this process. A signal to the whole group therefore reaches the child
    /// twice.
    fn forward_signal(&self, received: &ReceivedSignal) {
        if received.signal == Signal::SIGCHLD {
            return;
        }
        if received.signal == Signal::SIGHUP {
            self.hung_up.set(true);
        }
        if received.should_forward_to(self.child) {
            let _ = kill(self.child, received.signal);
        }
    }

    /// Stops this process with the signal that has stopped the child, because the shell waits for this process and not
    /// for the child. Does nothing if the parent is not a shell with job control, because no process would then
    /// continue this process.
    fn stop_like_child(&self, signal: Signal) {
        if !has_job_control_shell() {
            return;
        }
        let only = SigSet::from(signal);
        // A signal from the terminal is already pending and merges with this one, so the process stops once.
        let _ = raise(signal);
        let _ = only.thread_unblock();
        // SIGCONT for this process is forwarded to the child.
        let _ = only.thread_block();
    }

    pub(crate) fn exit_like_child(&self, end: ChildEnd) -> ! {
        match end {
            ChildEnd::Exited(code) => exit(code),
            ChildEnd::Killed(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    // The child has already written its core dump.
                    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
                    let _ = SigSet::from(signal).thread_unblock();
                    // Rust's runtime handles the first SIGSEGV or SIGBUS and then restores the default.
                    let _ = raise(signal);
                    let _ = raise(signal);
                }
                // The exit code that a shell reports for this signal.
                exit(128 + number)
            }
        }
    }
}

/// Whether the parent seems to be a shell with job control: it is in the session of this process, but in another
/// process group.
fn has_job_control_shell() -> bool {
    let parent = getppid();
    getsid(Some(parent)) == getsid(None) && getpgid(Some(parent)) != Ok(getpgrp())
}
