use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

const BUFFER_BYTES: usize = 16 * 1024;

/// A watch descriptor: the number of a watch. The kernel never uses a number twice.
pub(super) type Wd = i32;

#[derive(Debug, Clone, Copy)]
pub(super) struct InotifyEvent {
    pub(super) wd: Wd,
    pub(super) flags: ReadFlags,
}

pub(super) struct Inotify {
    fd: Arc<OwnedFd>,
}

impl Inotify {
    pub(super) fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|errno| match errno {
            Errno::MFILE => limit_error("inotify instances or open files", "fs.inotify.max_user_instances"),
            errno => errno.into(),
        })?;
        Ok(Self { fd: Arc::new(fd) })
    }

    /// The file descriptor that becomes readable when there are events. [`read`](Self::read) returns the events.
    pub(super) fn fd(&self) -> Arc<OwnedFd> {
        self.fd.clone()
    }

    /// Adds a watch. If the inode is already watched, replaces the flags of that watch and returns its descriptor.
    pub(super) fn add(&self, path: &Path, flags: WatchFlags) -> io::Result<Wd> {
        inotify::add_watch(&self.fd, path, flags).map_err(|errno| match errno {
            Errno::NOSPC => limit_error("inotify watches", "fs.inotify.max_user_watches"),
            errno => errno.into(),
        })
    }

    /// Removes a watch. Does nothing if the watch has already ended.
    pub(super) fn remove(&self, wd: Wd) {
        let _ = inotify::remove_watch(&self.fd, wd);
    }

    /// Reads the available events. Fails with `WouldBlock` if there are none.
    pub(super) fn read(&self) -> io::Result<Vec<InotifyEvent>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let mut events = Vec::new();
        loop {
            let event = reader.next()?;
            events.push(InotifyEvent { wd: event.wd(), flags: event.events() });
            if reader.is_buffer_empty() {
                return Ok(events);
            }
        }
    }
}

fn limit_error(what: &str, setting: &str) -> io::Error {
    let message = format!("this user has no {what} left: raise the sysctl {setting}");
    io::Error::new(io::ErrorKind::QuotaExceeded, message)
}
