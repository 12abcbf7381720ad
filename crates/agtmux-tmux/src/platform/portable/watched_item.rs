//! The polled state of a watched object, compared with its previous state.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::platform::signals::{PlatformSignal, WatchToken};
use crate::platform::tty::TerminalIdentity;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WatchKind {
    Terminal,
    Process,
    File,
    Dir,
}

impl WatchKind {
    pub(super) fn signal(self) -> fn(WatchToken) -> PlatformSignal {
        match self {
            Self::Terminal => PlatformSignal::TerminalGone,
            Self::Process => PlatformSignal::Exited,
            Self::File => PlatformSignal::FileChanged,
            Self::Dir => PlatformSignal::DirChanged,
        }
    }
}

pub(super) enum WatchedItem {
    Terminal { path: PathBuf, terminal: TerminalIdentity },
    Process { pid: u32, start: Option<u64> },
    File { path: PathBuf, state: FileState },
    Dir { path: PathBuf, state: DirState },
    Contents { path: PathBuf, state: DirContentsState },
}

pub(super) enum WatchedItemChange {
    None,
    Changed,
    Gone,
}

impl WatchedItem {
    pub(super) fn terminal(path: &Path) -> io::Result<Self> {
        Ok(Self::Terminal { path: path.into(), terminal: TerminalIdentity::at(path)? })
    }

    pub(super) fn file(path: &Path) -> io::Result<Self> {
        Ok(Self::File { path: path.into(), state: FileState::at(path)? })
    }

    pub(super) fn dir(path: &Path) -> io::Result<Self> {
        Ok(Self::Dir { path: path.into(), state: DirState::at(path)? })
    }

    pub(super) fn contents(path: &Path) -> io::Result<Self> {
        Ok(Self::Contents { path: path.into(), state: DirContentsState::at(path)? })
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Terminal { terminal, .. }, Self::Terminal { terminal: other, .. }) => terminal.is_same(other),
            (Self::Process { pid, start }, Self::Process { pid: other_pid, start: other_start }) => {
                (pid, start) == (other_pid, other_start)
            }
            (Self::File { path, .. }, Self::File { path: other, .. }) => path == other,
            (Self::Dir { path, .. }, Self::Dir { path: other, .. })
            | (Self::Contents { path, .. }, Self::Contents { path: other, .. }) => path == other,
            _ => false,
        }
    }

    pub(super) fn poll(&mut self) -> WatchedItemChange {
        match self {
            Self::Terminal { path, terminal } => {
                let same = TerminalIdentity::at(path).is_ok_and(|now| now.is_same(terminal));
                if same { WatchedItemChange::None } else { WatchedItemChange::Gone }
            }
            Self::Process { pid, .. } => {
                if is_alive(*pid) {
                    WatchedItemChange::None
                } else {
                    WatchedItemChange::Gone
                }
            }
            Self::File { path, state: look } => compare(look, FileState::at(path)),
            Self::Dir { path, state: look } => compare(look, DirState::at(path)),
            Self::Contents { path, state: look } => compare(look, DirContentsState::at(path)),
        }
    }
}

fn compare<Look: PartialEq>(before: &mut Look, now: io::Result<Look>) -> WatchedItemChange {
    match now {
        Ok(now) if now == *before => WatchedItemChange::None,
        Ok(now) => {
            *before = now;
            WatchedItemChange::Changed
        }
        Err(_) => WatchedItemChange::Gone,
    }
}

/// Whether the process exists. True for a zombie.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(Errno::SRCH)
}

#[derive(PartialEq, Eq)]
pub(super) struct FileState {
    identity: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl FileState {
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            let message = format!("{} is not a plain file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self {
            identity: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// The time alone is too coarse on some file systems, and the names alone miss a replaced entry.
#[derive(PartialEq, Eq)]
pub(super) struct DirState {
    modified: (i64, i64),
    names: Vec<OsString>,
}

impl DirState {
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        let mut names: Vec<_> =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort_unstable();
        Ok(Self { modified: (metadata.mtime(), metadata.mtime_nsec()), names })
    }
}

/// Name, length and modification time of each file.
#[derive(PartialEq, Eq)]
pub(super) struct DirContentsState {
    files: Vec<(OsString, u64, (i64, i64))>,
}

impl DirContentsState {
    fn at(path: &Path) -> io::Result<Self> {
        let look = |entry: io::Result<std::fs::DirEntry>| -> io::Result<_> {
            let entry = entry?;
            let metadata = entry.metadata()?;
            Ok((entry.file_name(), metadata.len(), (metadata.mtime(), metadata.mtime_nsec())))
        };
        // A file that disappeared meanwhile is missing in the next poll.
        let mut files: Vec<_> = std::fs::read_dir(path)?.filter_map(|entry| look(entry).ok()).collect();
        files.sort_unstable();
        Ok(Self { files })
    }
}
