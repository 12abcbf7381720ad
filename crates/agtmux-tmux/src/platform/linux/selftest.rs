use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::inotify::Inotify;

const DEADLINE: Duration = Duration::from_secs(1);

/// Checks that a write to a terminal causes an inotify event. Some sandboxes do not report such events.
pub(super) fn terminals_report_output() -> io::Result<()> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let inotify = Inotify::new()?;
    inotify.add(path, WatchFlags::MODIFY | WatchFlags::ONESHOT)?;
    rustix::io::write(&slave, b".")?;
    wait_for_write(&inotify)
}

fn wait_for_write(inotify: &Inotify) -> io::Result<()> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&inotify.fd(), PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "a write to a terminal caused no event")),
            Ok(_) if inotify.read()?.iter().any(|event| event.flags.contains(ReadFlags::MODIFY)) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
