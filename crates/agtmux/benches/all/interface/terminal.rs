//! A program on a pseudo terminal, with the times at which it writes.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::ChildGuard;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What a program wrote at once, and when it arrived.
type TimedBytes = (Instant, Vec<u8>);

pub(crate) struct TimedTerminal {
    pub(crate) process: ChildGuard,
    pub(crate) started: Instant,
    keys: File,
    written: Receiver<TimedBytes>,
}

impl TimedTerminal {
    /// Starts the command on a terminal with 120 columns and 40 rows.
    pub(crate) fn start(command: &mut Command) -> Self {
        let (terminal, program_side) = open();
        let share = || Stdio::from(program_side.try_clone().expect("a descriptor can be shared"));
        let started = Instant::now();
        let process = ChildGuard::start(command.stdin(share()).stdout(share()).stderr(share()));
        // `command` would keep the terminal open while it exists, so replace its descriptors.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut reader = terminal.try_clone().expect("a descriptor can be shared");
        let (sender, written) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        Self { process, started, keys: terminal, written }
    }

    /// Waits until the program has written this text, and returns when that was. Sequences of the terminal may be
    /// between the letters of the text.
    pub(crate) fn wait_for(&self, text: &str, timeout: Duration) -> Option<Instant> {
        let until = Instant::now() + timeout;
        let mut all = Vec::new();
        while let Ok((at, bytes)) = self.written.recv_timeout(until.saturating_duration_since(Instant::now())) {
            all.extend_from_slice(&bytes);
            if String::from_utf8_lossy(&all).contains(text) {
                return Some(at);
            }
        }
        None
    }

    /// Drops what was written, until the program has been quiet for this time.
    pub(crate) fn wait_until_quiet(&self, quiet: Duration, timeout: Duration) {
        let until = Instant::now() + timeout;
        while Instant::now() < until && self.written.recv_timeout(quiet).is_ok() {}
    }

    /// Presses a key, and returns the time until the program has written.
    pub(crate) fn time_of_key(&mut self, key: &str, timeout: Duration) -> Option<Duration> {
        while self.written.try_recv().is_ok() {}
        let start = Instant::now();
        self.press(key);
        self.written.recv_timeout(timeout).ok().map(|(at, _)| at - start)
    }

    /// Presses a key, and returns the time until the program has written a text that contains this.
    pub(crate) fn time_of_key_to(&mut self, key: &str, text: &str, timeout: Duration) -> Option<Duration> {
        while self.written.try_recv().is_ok() {}
        let start = Instant::now();
        self.press(key);
        self.wait_for(text, timeout).map(|at| at - start)
    }

    pub(crate) fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).expect("the terminal takes keys");
    }

    /// The number of bytes that the program writes within this time.
    pub(crate) fn bytes_within(&self, time: Duration) -> usize {
        let until = Instant::now() + time;
        let mut bytes = 0;
        loop {
            match self.written.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((_, written)) => bytes += written.len(),
                Err(RecvTimeoutError::Timeout) => return bytes,
                Err(RecvTimeoutError::Disconnected) => panic!("the program has ended"),
            }
        }
    }
}

fn open() -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("the terminal can be unlocked");
    let size = Winsize { ws_col: 120, ws_row: 40, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a terminal has a size");
    let path = ptsname(&terminal, Vec::new()).expect("the terminal has a name");
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed());
    let program_side = options.open(OsStr::from_bytes(path.to_bytes())).expect("the other side opens");
    (File::from(terminal), program_side)
}
