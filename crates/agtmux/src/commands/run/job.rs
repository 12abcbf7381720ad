//! A child that shares our process group and terminal, and a parent that nobody notices.
//!
//! Signals are blocked here, never ignored or handled: the child begins with the mask that we began with, and what we do
//! to ourselves (stop, die) has its usual effect as soon as the signal is let through.

use std::cell::Cell;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::exit;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, raise};
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, WaitOptions, setrlimit, waitpid};

use crate::error::{CliError, Exit};

const WATCHED: [Signal; 11] = [
    Signal::SIGCHLD,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    /// By the signal of this number. Real-time signals have no name in any list.
    Killed(i32),
}

pub(crate) struct Job {
    child: Pid,
    watched: SigSet,
    /// Its terminal was taken away.
    hung_up: Cell<bool>,
}

impl Job {
    pub(super) fn start(words: &[OsString]) -> io::Result<Self> {
        Self::start_with(words, std::env::vars_os())
    }

    /// With these variables, and no others.
    pub(crate) fn start_with(
        words: &[OsString],
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let watched: SigSet = WATCHED.into_iter().collect();
        let usual = watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        match spawn(words, variables, &usual) {
            Ok(child) => Ok(Self { child, watched, hung_up: Cell::new(false) }),
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
    pub(crate) fn wait(&self) -> End {
        loop {
            if let Some(end) = self.look() {
                return end;
            }
            match self.watched.wait() {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => self.pass_on(signal),
            }
        }
    }

    /// Takes in all that has happened to the child.
    fn look(&self) -> Option<End> {
        let flags = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        let child = rustix::process::Pid::from_raw(self.child.as_raw());
        loop {
            match waitpid(child, flags) {
                Ok(Some((_, status))) => {
                    if let Some(code) = status.exit_status() {
                        return Some(End::Exited(code));
                    } else if let Some(signal) = status.terminating_signal() {
                        return Some(End::Killed(signal));
                    } else if let Some(Ok(signal)) = status.stopping_signal().map(Signal::try_from) {
                        self.stop_too(signal);
                    }
                }
                Ok(None) => return None,
                Err(Errno::INTR) => {}
                // Somebody else has waited for it: that is its end, too.
                Err(_) => return Some(End::Exited(Exit::Failed as i32)),
            }
        }
    }

    /// What a terminal sends goes to the whole foreground group: the child has it already.
    fn pass_on(&self, signal: Signal) {
        if signal == Signal::SIGHUP {
            self.hung_up.set(true);
        }
        let from_terminal =
            matches!(signal, Signal::SIGINT | Signal::SIGQUIT | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU);
        if !(from_terminal && in_foreground()) {
            let _ = kill(self.child, signal);
        }
    }

    /// The shell waits for us, not for the child: it must see us stop, by the same signal. Where no shell would wake us
    /// up again we stay awake.
    fn stop_too(&self, signal: Signal) {
        if !has_a_shell() {
            return;
        }
        let only = SigSet::from(signal);
        // What has come from the terminal and this one are the same pending signal: we stop once.
        let _ = raise(signal);
        let _ = only.thread_unblock();
        // Whoever wakes us means the child, too: the signal that did it is passed on.
        let _ = only.thread_block();
    }

    pub(crate) fn end_like_it(&self, end: End) -> Result<Exit, CliError> {
        match end {
            End::Exited(code) => exit(code),
            End::Killed(number) => {
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

/// std's own way hands our mask down, and we need another one.
fn spawn(words: &[OsString], variables: impl Iterator<Item = (OsString, OsString)>, mask: &SigSet) -> io::Result<Pid> {
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let args: Vec<CString> = words.iter().map(|word| text(word.as_bytes().to_vec())).collect::<io::Result<_>>()?;
    let variable = |(name, value): (OsString, OsString)| {
        text([name.into_vec(), value.into_vec()].join(OsStr::new("=").as_bytes()))
    };
    let environment: Vec<CString> = variables.map(variable).collect::<io::Result<_>>()?;
    let program = args.first().ok_or(io::ErrorKind::NotFound)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_sigmask(mask)?;
    // Rust's runtime ignores it, and that would be inherited.
    attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF)?;
    Ok(posix_spawnp(program, &PosixSpawnFileActions::init()?, &attributes, &args, &environment)?)
}

fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group.as_raw_nonzero().get() == getpgrp().as_raw())
    })
}

/// Our parent is of the same session but not of our job, as a shell with job control is.
fn has_a_shell() -> bool {
    let parent = getppid();
    getsid(Some(parent)) == getsid(None) && getpgid(Some(parent)) != Ok(getpgrp())
}
