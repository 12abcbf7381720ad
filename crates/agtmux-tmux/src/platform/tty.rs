use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// How many bytes were typed that the program in this terminal has not read yet. None where that cannot be told.
pub fn unread_input(path: &Path) -> Option<u64> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tty = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::termios::isatty(&tty).then(|| rustix::io::ioctl_fionread(&tty).ok())?
}

/// Tells one terminal from the next one that gets the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terminal {
    device: (u64, u64),
    inode: u64,
    changed: (i64, i64),
    modified_nanos: i64,
}

impl Terminal {
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
    pub(super) fn is(&self, other: &Self) -> bool {
        self.device == other.device
            && self.inode == other.inode
            && (self.changed == other.changed || self.modified_nanos == other.modified_nanos)
    }
}

impl From<&Metadata> for Terminal {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: (metadata.dev(), metadata.rdev()),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified_nanos: metadata.mtime_nsec(),
        }
    }
}
