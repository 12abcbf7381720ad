use std::io::IsTerminal;

use tokio::sync::oneshot;

/// Waits for the key `q` on stdin.
#[derive(Debug)]
pub(super) struct QuitKey(Option<oneshot::Receiver<()>>);

impl QuitKey {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn read_stdin() -> Self {
        if !std::io::stdin().is_terminal() {
            return Self::none();
        }
        let (pressed, noticed) = oneshot::channel();
        // A thread reads the keys, because other processes share the terminal and need it in blocking mode. The thread
        // ends with the process.
        std::thread::spawn(move || {
            if wait_for_q() {
                let _ = pressed.send(());
            }
        });
        Self(Some(noticed))
    }

    /// Returns when the user has pressed the key. Never returns if stdin is not a terminal.
    pub(super) async fn pressed(&mut self) {
        if let Some(noticed) = &mut self.0
            && noticed.await.is_ok()
        {
            return;
        }
        self.0 = None;
        std::future::pending().await
    }
}

fn wait_for_q() -> bool {
    let stdin = std::io::stdin();
    let mut typed = [0; 64];
    loop {
        match rustix::io::read(&stdin, &mut typed) {
            Ok(0) => return false,
            Ok(n) if typed[..n].contains(&b'q') => return true,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
