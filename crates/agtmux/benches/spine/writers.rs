//! Busy panes. Their terminals are written to from here, which to tmux and to the daemon is the same as a program that
//! writes, and can be switched on and off.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agtmux_testkit::TestPane;

pub(crate) const BUSY_PANES: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Each pane gets a line ten times a second until this is dropped.
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
                    terminal.write_all(b"a line of output from a busy program\r\n").expect("a terminal takes output");
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
        // It has only failed if a pane went away, and then the panic was shown.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) fn open_terminal(pane: &TestPane) -> File {
    OpenOptions::new().write(true).open(&pane.tty).expect("the terminal is ours")
}
