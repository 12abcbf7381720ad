use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// The maximum number of bytes in a typed line, without the newline. The limit of the system includes the newline: it
/// is 4096 on Linux and 1024 on macOS.
const MAX_LINE_BYTES: usize = if cfg!(target_os = "linux") { 4095 } else { 1023 };

/// How many typed bytes the program in this terminal has not read yet. `None` if unknown.
pub fn unread_input(path: &Path) -> Option<u64> {
    rustix::io::ioctl_fionread(open_tty(path)?).ok()
}

/// The maximum length of a typed line if the terminal is in canonical mode. In this mode, the terminal discards the
/// rest of a longer line. `None` if the program reads raw bytes, or if the mode is unknown.
pub fn max_line_bytes(path: &Path) -> Option<usize> {
    use rustix::termios::{LocalModes, tcgetattr};
    let collects = tcgetattr(open_tty(path)?).ok()?.local_modes.contains(LocalModes::ICANON);
    collects.then_some(MAX_LINE_BYTES)
}

fn open_tty(path: &Path) -> Option<rustix::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tty = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::termios::isatty(&tty).then_some(tty)
}

/// The identity of a terminal. It differs from the identity of a later terminal with the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TerminalIdentity {
    device: (u64, u64),
    inode: u64,
    changed: (i64, i64),
    modified_nanos: i64,
}

impl TerminalIdentity {
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        if !metadata.file_type().is_char_device() {
            let message = format!("{} is not a terminal", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self::from(&metadata))
    }

    /// Whether both identities belong to the same terminal. Two terminals with the same number have the same inode
    /// number but different creation times. The change time equals the creation time until chmod (or `mesg`) runs.
    /// Output changes only the seconds of the modification time: its nanoseconds stay those of the creation time. Two
    /// terminals that were created within one tick of the kernel's clock, a few milliseconds, look the same. That does
    /// not matter, because no pane that agtmux cares about ends so soon.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.device == other.device
            && self.inode == other.inode
            && (self.changed == other.changed || self.modified_nanos == other.modified_nanos)
    }
}

impl From<&Metadata> for TerminalIdentity {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: (metadata.dev(), metadata.rdev()),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified_nanos: metadata.mtime_nsec(),
        }
    }
}
