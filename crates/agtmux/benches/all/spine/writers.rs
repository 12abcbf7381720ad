//! Makes panes busy by writing to their terminals. For tmux and the daemon this looks like a program that writes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agtmux_testkit::TestPane;

pub(crate) const BUSY_PANES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Writes a line to each pane ten times per second until it is dropped.
pub(crate) struct BusyWriters {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyWriters {
    pub(crate) fn start(panes: &[TestPane]) -> Self {
        let mut terminals: Vec<File> = panes.iter().map(open_terminal).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let pause = PAUSE / u32::try_from(terminals.len().max(1)).unwrap_or(1);
            while !stopped.load(Ordering::Relaxed) {
                for terminal in &mut terminals {
                    terminal
                        .write_all(b"a line of output from a busy program\r\n")
                        .expect("the terminal accepts output");
                    thread::sleep(pause);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for BusyWriters {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread fails only if a pane has ended. Its panic message is printed already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) fn open_terminal(pane: &TestPane) -> File {
    OpenOptions::new().write(true).open(&pane.tty).expect("the terminal is writable")
}
