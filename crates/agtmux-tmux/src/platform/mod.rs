//! Everything that depends on the operating system: who wrote to a terminal, which process ended, what runs in a pane.
//!
//! Linux has inotify, pidfd and `/proc`; `portable` does with `ps` and polling what every Unix can, and is tested on
//! Linux as well. Signals are hints: what is read back is truth.

#[cfg(target_os = "linux")]
mod linux;
mod portable;
mod process;
pub(crate) mod ps_rows;
mod signal_process;
mod signals;
mod snapshot;
mod stat;
mod tcp;
#[cfg(test)]
mod tests;
mod tty;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use process::{MAX_TREE, PaneProcesses, ProcessInfo, ProcessTable};
pub use signal_process::signal_process;
pub use signals::{PlatformSignal, PlatformSignals, WatchToken};
pub use snapshot::ProcessSnapshot;
pub use tcp::{TcpPeer, tcp_peer};
pub use tty::{max_line_bytes, unread_input};

/// Watches terminals, processes, files and directories, and says so through the [`Signals`] it was opened with.
///
/// A token may stand for one watch of each kind at a time (a pane's terminal and its process); watching the same kind
/// again with the same token replaces the watch, or does nothing if it is the same thing. Tokens may share what they
/// watch. Dropping the watcher ends all watches and closes the signals.
pub trait PlatformWatcher: Send + Sync {
    /// The tty must be a character device. Where [`reports_output`](Self::reports_output) is false, only
    /// [`Signal::TerminalGone`] comes.
    fn watch_terminal(&self, token: WatchToken, tty: &Path) -> io::Result<()>;

    /// [`Signal::Exited`] comes at once if the process is already gone or its start time is not `start`.
    fn watch_process(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()>;

    /// The path must name a plain file. The watch follows the path when the file is replaced.
    fn watch_file(&self, token: WatchToken, path: &Path) -> io::Result<()>;

    fn watch_dir(&self, token: WatchToken, path: &Path) -> io::Result<()>;

    /// As a directory, and also what is written to the files in it. [`Signal::DirChanged`] tells of both.
    fn watch_dir_contents(&self, token: WatchToken, path: &Path) -> io::Result<()>;

    /// Ends all watches of this token. No signal for it is received after this returns.
    fn unwatch(&self, token: WatchToken);

    /// Whether terminals report their output here; where not, the caller asks tmux once a second instead.
    fn reports_output(&self) -> bool;
}

#[derive(Debug, Clone, Copy)]
pub struct PlatformOptions {
    /// Use `ps` and polling even where there is something better.
    pub force_portable: bool,
    /// Whether to watch what terminals write. Processes, files and directories are watched natively either way.
    pub pty_events: bool,
}

impl Default for PlatformOptions {
    fn default() -> Self {
        Self { force_portable: false, pty_events: true }
    }
}

pub struct Platform {
    pub watcher: Arc<dyn PlatformWatcher>,
    pub signals: PlatformSignals,
    pub processes: Arc<dyn ProcessTable>,
}

/// The best there is here, after a self-test. Must be called inside a tokio runtime with time and IO enabled; the
/// watches live in that runtime, but may be asked for from any thread.
pub fn open(options: PlatformOptions) -> io::Result<Platform> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let (sender, signals) = signals::channel();
    let processes = process_table(options.force_portable);
    #[cfg(target_os = "linux")]
    if !options.force_portable {
        match linux::open_watcher(&runtime, &sender, options.pty_events) {
            Ok(watcher) => return Ok(Platform { watcher: Arc::new(watcher), signals, processes }),
            Err(error) => tracing::warn!(%error, "inotify or pidfd do not work here; polling instead"),
        }
    }
    let watcher = Arc::new(portable::PollingWatcher::start(&runtime, sender, portable::INTERVAL));
    Ok(Platform { watcher, signals, processes })
}

/// What runs on this machine, without watching anything. Needs no runtime.
pub fn process_table(force_portable: bool) -> Arc<dyn ProcessTable> {
    #[cfg(target_os = "linux")]
    if !force_portable && linux::ProcFs::works() {
        return Arc::new(linux::ProcFs::new());
    }
    let _ = force_portable;
    Arc::new(portable::PsTable::default())
}
