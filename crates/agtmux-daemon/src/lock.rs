//! One daemon per user: the process that holds the lock owns the socket and the database.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, fcntl_getlk};

/// The lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    // Closing any other handle of this file in the process would release the lock, so there is only one.
    _file: File,
}

/// Takes the lock. Returns `None` if another process holds it.
pub(crate) fn acquire(path: &Path) -> io::Result<Option<DaemonLock>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(DaemonLock { _file: file })),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The pid of the process that holds the lock. The kernel reports it; a pid file could be out of date.
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let lock = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
    u32::try_from(lock.pid?.as_raw_nonzero().get()).ok()
}
