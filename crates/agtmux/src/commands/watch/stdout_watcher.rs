//! Detects that the reader of stdout has closed the pipe.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Detects a closed pipe at once. Without this watcher, `watch` would run until its next write fails.
#[derive(Debug)]
pub(crate) struct StdoutWatcher(oneshot::Receiver<()>);

impl StdoutWatcher {
    pub(crate) fn start() -> Self {
        let (left, noticed) = oneshot::channel();
        // A thread waits, because other processes share the pipe and need it in blocking mode. The thread ends with the
        // process.
        std::thread::spawn(move || {
            if wait_for_error() {
                let _ = left.send(());
            }
        });
        Self(noticed)
    }

    /// Returns when the reader has closed the pipe.
    pub(crate) async fn closed(&mut self) {
        if (&mut self.0).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Waits until poll reports an error, which happens when the reader closes the pipe. Requests no other events from
/// poll. A regular file has no errors, so for a file this function blocks forever.
fn wait_for_error() -> bool {
    let stdout = std::io::stdout();
    loop {
        match poll(&mut [PollFd::new(&stdout, PollFlags::empty())], None) {
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
