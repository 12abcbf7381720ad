//! Whether anybody still reads our output.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Without it, a watch whose reader has gone would linger until the next change, which may never come.
#[derive(Debug)]
pub(crate) struct StdoutWatcher(oneshot::Receiver<()>);

impl StdoutWatcher {
    pub(crate) fn start() -> Self {
        let (left, noticed) = oneshot::channel();
        // A thread, because the pipe belongs to others too and must not be switched to non-blocking. It ends with us.
        std::thread::spawn(move || {
            if wait_for_error() {
                let _ = left.send(());
            }
        });
        Self(noticed)
    }

    /// Never returns while there may be a reader.
    pub(crate) async fn closed(&mut self) {
        if (&mut self.0).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Asked for nothing, poll reports only errors; a file has none and is waited for to no end.
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
