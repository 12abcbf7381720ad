//! A watched object. Each poll compares its state with the state at the previous poll.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::platform::PathKind;
use crate::platform::signals::{PlatformSignal, WatchToken};
use crate::platform::tty::TerminalIdentity;

pub(super) enum WatchedItem {
    Terminal { path: PathBuf, terminal: TerminalIdentity },
    Process { pid: u32, start: Option<u64> },
    Path { path: PathBuf, kind: PathKind, state: PathState },
}

#[derive(PartialEq, Eq)]
pub(super) enum WatchedItemChange {
    None,
    Changed,
    Gone,
}

impl WatchedItem {
    pub(super) fn terminal(path: &Path) -> io::Result<Self> {
        Ok(Self::Terminal { path: path.into(), terminal: TerminalIdentity::at(path)? })
    }

    pub(super) fn path(kind: PathKind, path: &Path) -> io::Result<Self> {
        Ok(Self::Path { path: path.into(), kind, state: PathState::at(kind, path)? })
    }

    /// The signal to send when the object changes.
    pub(super) fn signal(&self, token: WatchToken) -> PlatformSignal {
        match self {
            Self::Terminal { .. } => PlatformSignal::TerminalGone(token),
            Self::Process { .. } => PlatformSignal::Exited(token),
            Self::Path { kind, .. } => kind.signal()(token),
        }
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Terminal { terminal, .. }, Self::Terminal { terminal: other, .. }) => terminal.is_same(other),
            (Self::Process { pid, start }, Self::Process { pid: other_pid, start: other_start }) => {
                (pid, start) == (other_pid, other_start)
            }
            (Self::Path { path, kind, .. }, Self::Path { path: other_path, kind: other_kind, .. }) => {
                (path, kind) == (other_path, other_kind)
            }
            _ => false,
        }
    }

    pub(super) fn poll(&mut self) -> WatchedItemChange {
        let is_there = match self {
            Self::Terminal { path, terminal } => TerminalIdentity::at(path).is_ok_and(|now| now.is_same(terminal)),
            Self::Process { pid, .. } => is_alive(*pid),
            Self::Path { path, kind, state } => match PathState::at(*kind, path) {
                Ok(now) if now == *state => true,
                Ok(now) => {
                    *state = now;
                    return WatchedItemChange::Changed;
                }
                Err(_) => false,
            },
        };
        if is_there { WatchedItemChange::None } else { WatchedItemChange::Gone }
    }
}

/// Whether the process exists. A zombie also exists.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(Errno::SRCH)
}

/// A modification time in seconds and nanoseconds.
type ModifiedAt = (i64, i64);

#[derive(PartialEq, Eq)]
pub(super) enum PathState {
    /// `identity` is the device number and the inode number. A write changes `length` or `modified`.
    File { identity: (u64, u64), length: u64, modified: ModifiedAt },
    /// A change of a directory shows in at least one of the two values. `modified` alone is too coarse on some file
    /// systems, and `names` stays the same when an entry is replaced.
    Dir { modified: ModifiedAt, names: Vec<OsString> },
    /// The name, length and modification time of each file in a directory.
    Contents(Vec<(OsString, u64, ModifiedAt)>),
}

impl PathState {
    fn at(kind: PathKind, path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        match kind {
            PathKind::File if !metadata.is_file() => {
                let message = format!("{} is not a plain file", path.display());
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            PathKind::File => Ok(Self::File {
                identity: (metadata.dev(), metadata.ino()),
                length: metadata.len(),
                modified: modified_at(&metadata),
            }),
            PathKind::Dir => {
                let mut names: Vec<_> =
                    std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
                names.sort_unstable();
                Ok(Self::Dir { modified: modified_at(&metadata), names })
            }
            PathKind::Contents => {
                let look = |entry: io::Result<std::fs::DirEntry>| -> io::Result<_> {
                    let entry = entry?;
                    let metadata = entry.metadata()?;
                    Ok((entry.file_name(), metadata.len(), modified_at(&metadata)))
                };
                // A file that disappears while the directory is read is left out.
                let mut files: Vec<_> = std::fs::read_dir(path)?.filter_map(|entry| look(entry).ok()).collect();
                files.sort_unstable();
                Ok(Self::Contents(files))
            }
        }
    }
}

fn modified_at(metadata: &Metadata) -> ModifiedAt {
    (metadata.mtime(), metadata.mtime_nsec())
}
