//! A child that shares our process group and terminal, and a parent that nobody notices.
//!
//! Signals are blocked here, never ignored, and no handler of ours ever runs: the child begins with the mask that we began
//! with, and what we do to ourselves (stop, die) has its usual effect as soon as the signal is let through.

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
use crate::error::{CliError, CliExit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    Exited(i32),
    /// By the signal of this number. Real-time signals have no name in any list.
    Killed(i32),
}

pub(crate) struct ChildJob {
    child: Pid,
    signals: BlockedSignals,
    /// Its terminal was taken away.
    hung_up: Cell<bool>,
}

impl ChildJob {
    pub(super) fn start(words: &[OsString]) -> io::Result<Self> {
        Self::start_with(words, std::env::vars_os())
    }

    /// With these variables, and no others.
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

    /// Whether the terminal went before the child did.
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

    /// Takes in all that has happened to the child.
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
                // Somebody else has waited for it: that is its end, too.
                Err(_) => return Some(ChildEnd::Exited(CliExit::Failed as i32)),
            }
        }
    }

    /// What was sent to the group has reached the child as well, and cannot be told from what was sent to us alone: better
    /// twice than not at all.
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

    /// The shell waits for us, not for the child: it must see us stop, by the same signal. Where no shell would wake us
    /// up again we stay awake.
    fn stop_like_child(&self, signal: Signal) {
        if !has_job_control_shell() {
            return;
        }
        let only = SigSet::from(signal);
        // What has come from the terminal and this one are the same pending signal: we stop once.
        let _ = raise(signal);
        let _ = only.thread_unblock();
        // Whoever wakes us means the child, too: the signal that did it is passed on.
        let _ = only.thread_block();
    }

    pub(crate) fn exit_like_child(&self, end: ChildEnd) -> Result<CliExit, CliError> {
        match end {
            ChildEnd::Exited(code) => exit(code),
            ChildEnd::Killed(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    // The child has dumped its core, if it wanted to.
                    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
                    let _ = SigSet::from(signal).thread_unblock();
                    // Rust's runtime catches the first SIGSEGV or SIGBUS, and lets go of it then.
                    let _ = raise(signal);
                    let _ = raise(signal);
                }
                // What a shell makes of it.
                exit(128 + number)
            }
        }
    }
}

/// Our parent is of the same session but not of our job, as a shell with job control is.
fn has_job_control_shell() -> bool {
    let parent = getppid();
    getsid(Some(parent)) == getsid(None) && getpgid(Some(parent)) != Ok(getpgrp())
}
