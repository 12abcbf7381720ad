use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use super::DEADLINE;
use crate::platform::tty::TerminalIdentity;

/// A terminal in which no program runs.
pub(in crate::platform) struct Pty {
    pub(in crate::platform) path: PathBuf,
    slave: File,
    master: OwnedFd,
}

impl Pty {
    pub(in crate::platform) fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a free pty");
        unlockpt(&master).expect("our own pty");
        let name = ptsname(&master, Vec::new()).expect("a pty has a name");
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        let flags = i32::try_from(OFlags::NOCTTY.bits()).expect("a small flag");
        let slave = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).expect("our own pty");
        Self { path, slave, master }
    }

    /// Closes the terminal and opens another one with the same number. If two terminals are created within one tick of
    /// the kernel's clock, they look the same. The loop therefore skips terminals that look like the old one.
    pub(in crate::platform) fn replace(self) -> Self {
        let deadline = Instant::now() + DEADLINE;
        let (path, old) = (self.path.clone(), TerminalIdentity::at(&self.path).expect("our own pty"));
        drop(self);
        let mut others = Vec::new();
        loop {
            let pty = Self::open();
            if pty.path != path {
                others.push(pty);
            } else if !TerminalIdentity::at(&path).expect("our own pty").is_same(&old) {
                return pty;
            }
            others.truncate(others.len() % 64);
            assert!(Instant::now() < deadline, "{} was not free before the deadline", path.display());
        }
    }

    pub(in crate::platform) fn write(&self) {
        (&self.slave).write_all(b"x").expect("the pty accepts bytes");
        // Read the output, otherwise the buffer fills up.
        let mut read = [0; 64];
        rustix::io::read(&self.master, &mut read).expect("what was just written");
    }

    pub(in crate::platform) fn type_and_read_line(&self) {
        rustix::io::write(&self.master, b"y\n").expect("the pty accepts bytes");
        let mut line = [0; 64];
        let length = (&self.slave).read(&mut line).expect("the line just typed");
        assert_eq!(&line[..length], b"y\n");
    }

    pub(in crate::platform) fn stdio(&self) -> File {
        self.slave.try_clone().expect("a free descriptor")
    }
}
