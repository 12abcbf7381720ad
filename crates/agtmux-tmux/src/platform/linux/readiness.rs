use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Must be called inside a runtime.
#[expect(
    deprecated,
    reason = "what replaces it is unsafe; the danger is a descriptor closed early, and this one is owned"
)]
pub(super) fn readable_fd(fd: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}
