//! The operating system layer. It watches terminals, processes and files, and reads the process table.
//!
//! Linux uses inotify, pidfd and `/proc`. The module `portable` uses `ps` and polling. It works on every Unix and is
//! also tested on Linux. A [`PlatformSignal`] is only a hint: its receiver must then check the real state.

#[cfg(target_os = "linux")]
mod linux;
mod portable;
mod process;
pub(crate) mod ps_rows;
mod resources;
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
pub(crate) use resources::is_exhausted_errno;
pub use resources::{FileUse, has_room, is_exhausted};
pub use signal_process::signal_process;
pub use signals::{PlatformSignal, PlatformSignals, WatchToken};
pub use snapshot::ProcessSnapshot;
pub use tcp::{TcpPeer, TcpPeerUser, tcp_peer, tcp_peer_user};
pub use tty::{max_line_bytes, unread_input};

/// Watches terminals, processes, files and directories, and sends [`PlatformSignals`].
///
/// A token can have one watch of each kind, for example one for a pane's terminal and one for its process. A new watch
/// replaces the token's earlier watch of the same kind, or changes nothing if both watch the same object. Several
/// tokens can watch the same object. Dropping the watcher ends all watches and closes the signals.
pub trait PlatformWatcher: Send + Sync {
    /// Watches a terminal. `tty` must be a character device. If [`reports_output`](Self::reports_output) is false, the
    /// watch sends only [`PlatformSignal::TerminalGone`].
    fn watch_terminal(&self, token: WatchToken, tty: &Path) -> io::Result<()>;

    /// Watches a process until it ends. Sends [`PlatformSignal::Exited`] at once if the process is already gone or
    /// another process has its pid now. A process with another start time than `start` counts as another process.
    fn watch_process(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()>;

    fn watch_path(&self, kind: PathKind, token: WatchToken, path: &Path) -> io::Result<()>;

    fn watch_file(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.watch_path(PathKind::File, token, path)
    }

    fn watch_dir(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.watch_path(PathKind::Dir, token, path)
    }

    fn watch_dir_contents(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.watch_path(PathKind::Contents, token, path)
    }

    /// Ends all watches of this token. When this function has returned, no more signals for the token arrive.
    fn unwatch(&self, token: WatchToken);

    /// Whether this watcher reports output of terminals. If not, agtmux polls tmux once a second.
    fn reports_output(&self) -> bool;
}

/// What to watch at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A plain file. If another file replaces it, the watch moves to the new file at the same path.
    File,
    Dir,
    /// The entries of a directory, and the contents of the files in it. Both kinds of changes send
    /// [`PlatformSignal::DirChanged`].
    Contents,
}

impl PathKind {
    fn signal(self) -> fn(WatchToken) -> PlatformSignal {
        match self {
            Self::File => PlatformSignal::FileChanged,
            Self::Dir | Self::Contents => PlatformSignal::DirChanged,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct PlatformOptions {
    /// Whether to use `ps` and polling even if there is a native backend.
    pub force_portable: bool,
    /// Whether to watch the output of terminals. Processes, files and directories are watched in any case.
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

/// Opens the native backend if it works on this machine, otherwise the portable one. Must be called inside a tokio
/// runtime with time and IO enabled. The watches run in that runtime, but any thread can add watches.
pub fn open(options: PlatformOptions) -> io::Result<Platform> {
    let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    let (sender, signals) = signals::channel();
    let processes = process_table(options.force_portable);
    #[cfg(target_os = "linux")]
    if !options.force_portable {
        match linux::open_watcher(&runtime, &sender, options.pty_events) {
            Ok(watcher) => return Ok(Platform { watcher: Arc::new(watcher), signals, processes }),
            Err(error) => tracing::warn!(%error, "inotify or pidfd is not available; using polling"),
        }
    }
    let watcher = Arc::new(portable::PollingWatcher::start(&runtime, sender, portable::INTERVAL));
    Ok(Platform { watcher, signals, processes })
}

/// The process table of this machine. Needs no tokio runtime.
pub fn process_table(force_portable: bool) -> Arc<dyn ProcessTable> {
    #[cfg(target_os = "linux")]
    if !force_portable && linux::ProcFs::works() {
        return Arc::new(linux::ProcFs::new());
    }
    let _ = force_portable;
    Arc::new(portable::PsTable::default())
}
