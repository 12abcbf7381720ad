use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// What Linux and macOS keep of a line, without its end: 4096 and 1024.
const MAX_LINE_BYTES: usize = if cfg!(target_os = "linux") { 4095 } else { 1023 };

/// How many bytes were typed that the program in this terminal has not read yet. None where that cannot be told.
pub fn unread_input(path: &Path) -> Option<u64> {
    rustix::io::ioctl_fionread(open_tty(path)?).ok()
}

/// How long a line may be that is typed here; none where the program takes bytes as they come, or where it cannot be told.
/// A terminal that collects lines for its program throws away what is beyond that.
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

/// Tells one terminal from the next one that gets the same number.
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

    /// Two terminals of the same number have the same inode number, but were made at different times. The change time
    /// is the time of birth until somebody runs chmod (`mesg` does). The modification time moves with output, but the
    /// kernel then sets its seconds only: the nanoseconds are those of the birth. (Two births within one tick of the
    /// kernel's clock, a few milliseconds, look the same. No pane lives that short and matters.)
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
