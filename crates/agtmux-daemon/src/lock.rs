//! One daemon per user: the process that holds the locks owns the socket and the database.
//!
//! There is a lock beside the database and one beside the socket. If one of the two directories is removed while the
//! daemon runs, the lock in the other one still keeps a second daemon from starting.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::file_identity::FileIdentity;

/// The locks, held until the process ends.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    paths: Vec<PathBuf>,
    // Closing any handle of a file releases this process's lock on that file, so the daemon never closes a handle.
    held: Vec<(FileIdentity, File)>,
}

/// Whether this process still holds the locks. Another process may have deleted or replaced the lock files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockState {
    Held,
    /// Other processes hold some of the locks, but not all.
    Contended,
    /// Other processes hold all locks.
    Lost,
}

impl DaemonLock {
    /// Takes the locks. Returns `None` if another process holds one of them.
    pub(crate) fn acquire(paths: &Paths) -> io::Result<Option<Self>> {
        let mut lock = Self { paths: paths.locks(), held: Vec::new() };
        Ok((lock.renew()? == LockState::Held).then_some(lock))
    }

    /// Takes each lock again whose file was removed or replaced. Returns whether this process then holds the locks.
    pub(crate) fn renew(&mut self) -> io::Result<LockState> {
        let mut held = 0;
        for path in self.paths.clone() {
            if self.holds(&path) || self.take(&path)? {
                held += 1;
            }
        }
        Ok(match held {
            0 => LockState::Lost,
            count if count < self.paths.len() => LockState::Contended,
            _ => LockState::Held,
        })
    }

    /// Whether the lock files that this process held were all removed or replaced.
    pub(crate) fn is_gone(&self) -> bool {
        !self.paths.iter().any(|path| self.holds(path))
    }

    fn holds(&self, path: &Path) -> bool {
        FileIdentity::at(path).is_some_and(|found| self.held.iter().any(|(held, _)| *held == found))
    }

    /// Takes one lock. Returns false if another process holds it.
    fn take(&mut self, path: &Path) -> io::Result<bool> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.held.push((FileIdentity::of(&file)?, file));
                Ok(true)
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The pid of a process that holds one of the locks. It comes from the kernel, because a pid file could be out of date.
pub(crate) fn holder(paths: &Paths) -> Option<u32> {
    paths.locks().iter().find_map(|path| holder_of(path))
}

fn holder_of(path: &Path) -> Option<u32> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let lock = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
    u32::try_from(lock.pid?.as_raw_nonzero().get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_was_removed_is_locked_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state_dir, run) = (dir.path().join("state"), dir.path().join("run"));
        std::fs::create_dir(&state_dir).expect("created");
        std::fs::create_dir(&run).expect("created");
        let paths = Paths { config: dir.path().join("c"), state_dir, socket: run.join("agtmuxd.sock") };
        let mut lock = DaemonLock::acquire(&paths).expect("no error").expect("the locks are free");
        assert_eq!(lock.held.len(), 2);
        assert_eq!((lock.renew().expect("no error"), lock.held.len()), (LockState::Held, 2), "nothing was removed");
        std::fs::remove_file(paths.lock()).expect("it exists");
        assert_eq!(lock.renew().expect("no error"), LockState::Held);
        assert!(paths.lock().exists());
        assert_eq!(lock.held.len(), 3, "the handle of the removed file stays open");
    }

    #[test]
    fn every_socket_has_its_own_lock() {
        let locks = |socket: &str| Paths { config: "/c".into(), state_dir: "/s".into(), socket: socket.into() }.locks();
        for socket in ["/s/agtmuxd.sock", "/run/d.work", "/run/d.home", "/run/d.lock"] {
            assert_eq!(locks(socket), [PathBuf::from("/s/agtmuxd.lock"), PathBuf::from(format!("{socket}.lock"))]);
        }
    }
}
