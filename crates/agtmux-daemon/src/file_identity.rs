//! Finds out whether a path still names the file that the daemon has open.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and the inode of a file. No other file gets the same inode while the daemon has the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The identity of the file at this path. `None` if there is no file.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }

    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}
