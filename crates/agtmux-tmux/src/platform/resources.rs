//! Detects that this process lacks file descriptors, threads or memory.
//!
//! The kernel gives a new file the lowest free descriptor, so the number of a new descriptor tells how many are in use.
//! agtmux refuses to keep a file open if its number is close to the limit. The highest numbers thus remain free for
//! files that are open only briefly.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The purpose of a file descriptor that stays open for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Reports the end of a process. Without the descriptor, agtmux checks at intervals whether the process still runs.
    ProcessWatch,
    /// The connection to a client.
    Connection,
}

impl FileUse {
    /// How many descriptors must stay free. A call of tmux needs about eight, and reading `/proc` needs two.
    fn headroom(self) -> u64 {
        match self {
            Self::ProcessWatch => 32,
            Self::Connection => 16,
        }
    }
}

/// Whether enough descriptors stay free if agtmux keeps this new descriptor open.
pub fn has_room(new: BorrowedFd<'_>, purpose: FileUse) -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return true };
    u64::try_from(new.as_raw_fd()).is_ok_and(|number| number + purpose.headroom() < limit)
}

/// Whether an operation failed only because this process, or the machine, lacks a resource at the moment. Such an error
/// says nothing about the file or process that the operation was for.
pub fn is_exhausted(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| is_exhausted_errno(Errno::from_raw_os_error(code)))
}

pub(crate) fn is_exhausted_errno(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::AGAIN)
}

/// Converts the result of reading a file. `None` if the file is gone or agtmux may not read it. Fails only if a
/// resource is exhausted.
#[cfg(target_os = "linux")]
pub(super) fn none_unless_exhausted<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_exhausted(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn only_a_lack_of_resources_is_an_exhaustion() {
        for code in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
            assert!(is_exhausted(&code.into()), "{code}");
        }
        for code in [Errno::NOENT, Errno::SRCH, Errno::ACCESS] {
            assert!(!is_exhausted(&code.into()), "{code}");
        }
        assert!(!is_exhausted(&io::Error::other("ps printed nothing")));
    }

    #[test]
    fn a_low_descriptor_leaves_room() {
        let file = File::open("/dev/null").expect("it exists");
        assert!(has_room(file.as_fd(), FileUse::Connection));
    }
}
