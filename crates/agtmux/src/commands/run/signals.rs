//! The signals that come to us and are meant for the child, and who sent them.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::Pid;

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

/// What a terminal sends to everybody in its foreground group.
const TERMINAL_SIGNALS: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// One that has come.
pub(super) struct ReceivedSignal {
    pub(super) signal: Signal,
    /// None for the kernel, or where it is not told.
    sender: Option<Pid>,
    from_terminal: bool,
}

impl ReceivedSignal {
    /// Whether the child has to be told. What a terminal sent has reached it already. And nobody is told what he said
    /// himself, as a program that signals its own group would be.
    pub(super) fn should_forward_to(&self, child: Pid) -> bool {
        !self.from_terminal && self.sender != Some(child)
    }
}

/// Signals that are kept back until they are asked for.
pub(super) struct BlockedSignals {
    #[cfg(target_os = "linux")]
    fd: nix::sys::signalfd::SignalFd,
    #[cfg(not(target_os = "linux"))]
    watched: SigSet,
}

impl BlockedSignals {
    /// From now on, with the mask from before.
    pub(super) fn block() -> io::Result<(Self, SigSet)> {
        collect_child_status()?;
        let watched: SigSet = WATCHED.into_iter().collect();
        let signals = Self::of(watched)?;
        Ok((signals, watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?))
    }
}

/// Installs a handler for SIGCHLD. A process that inherits an ignored SIGCHLD cannot learn how its child ended: the
/// kernel discards the status. The handler never runs because the signal is blocked, and the child starts with the
/// default.
fn collect_child_status() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()).map(drop)
}

#[cfg(target_os = "linux")]
impl BlockedSignals {
    fn of(watched: SigSet) -> io::Result<Self> {
        use nix::sys::signalfd::{SfdFlags, SignalFd};
        Ok(Self { fd: SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for the next one. None for a wait that was cut short.
    pub(super) fn next(&self) -> Option<ReceivedSignal> {
        let told = self.fd.read_signal().ok()??;
        let signal = Signal::try_from(told.ssi_signo.cast_signed()).ok()?;
        let from_kernel = told.ssi_code == nix::libc::SI_KERNEL;
        let sender = (!from_kernel).then(|| Pid::from_raw(told.ssi_pid.cast_signed()));
        Some(ReceivedSignal { signal, sender, from_terminal: from_kernel && TERMINAL_SIGNALS.contains(&signal) })
    }
}

/// Where it is not told who sent a signal, one such in the foreground is taken for the terminal's.
#[cfg(not(target_os = "linux"))]
impl BlockedSignals {
    fn of(watched: SigSet) -> io::Result<Self> {
        Ok(Self { watched })
    }

    pub(super) fn next(&self) -> Option<ReceivedSignal> {
        let signal = self.watched.wait().ok()?;
        Some(ReceivedSignal {
            signal,
            sender: None,
            from_terminal: TERMINAL_SIGNALS.contains(&signal) && in_foreground(),
        })
    }
}

#[cfg(not(target_os = "linux"))]
fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| {
        let ours = nix::unistd::getpgrp().as_raw();
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group.as_raw_nonzero().get() == ours)
    })
}
