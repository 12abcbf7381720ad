//! The signals that the wrapper forwards to its child, and their senders.

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

/// The signals that a terminal sends to its whole foreground process group.
const TERMINAL_SIGNALS: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// A received signal.
pub(super) struct ReceivedSignal {
    pub(super) signal: Signal,
    /// `None` if the kernel sent the signal or the system does not report the sender.
    sender: Option<Pid>,
    from_terminal: bool,
}

impl ReceivedSignal {
    /// Whether to forward the signal to the child. Signals from the terminal are not forwarded, because the terminal
    /// sends them to the child too. Signals that the child itself sent to its group are not forwarded either.
    pub(super) fn should_forward_to(&self, child: Pid) -> bool {
        !self.from_terminal && self.sender != Some(child)
    }
}

/// The signals that this process blocks, to read them one at a time.
pub(super) struct BlockedSignals {
    #[cfg(target_os = "linux")]
    fd: nix::sys::signalfd::SignalFd,
    #[cfg(not(target_os = "linux"))]
    watched: SigSet,
}

impl BlockedSignals {
    /// Blocks the signals. Also returns the previous mask.
    pub(super) fn block() -> io::Result<(Self, SigSet)> {
        collect_child_status()?;
        let watched: SigSet = WATCHED.into_iter().collect();
        let signals = Self::of(watched)?;
        Ok((signals, watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?))
    }
}

/// Installs a handler for SIGCHLD. Without a handler, SIGCHLD could still be ignored, because a process inherits this
/// setting from its parent. The kernel would then discard the exit status of the child. The handler never runs, because
/// the signal is blocked. The child starts with the default action.
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

    /// Waits for the next signal. Returns `None` if the wait was interrupted.
    pub(super) fn next(&self) -> Option<ReceivedSignal> {
        let info = self.fd.read_signal().ok()??;
        let signal = Signal::try_from(info.ssi_signo.cast_signed()).ok()?;
        let from_kernel = info.ssi_code == nix::libc::SI_KERNEL;
        let sender = (!from_kernel).then(|| Pid::from_raw(info.ssi_pid.cast_signed()));
        Some(ReceivedSignal { signal, sender, from_terminal: from_kernel && TERMINAL_SIGNALS.contains(&signal) })
    }
}

/// For systems that do not report the sender of a signal. While this process is in the foreground, every signal that a
/// terminal can send is assumed to come from the terminal.
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
        let own_group = nix::unistd::getpgrp().as_raw();
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group.as_raw_nonzero().get() == own_group)
    })
}
