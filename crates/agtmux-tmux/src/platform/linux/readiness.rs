use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Wraps a descriptor so that the caller can wait until it is readable. Must be called inside a tokio runtime.
#[expect(
    deprecated,
    reason = "the replacement is unsafe, because a descriptor may be closed early; this function owns the descriptor"
)]
pub(super) fn readable_fd(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
