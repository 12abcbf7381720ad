//! A tmux client with its own terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::child::ChildGuard;
use crate::tmux::TestTmuxServer;

/// Only this many of the newest bytes of a client's output are stored.
const KEPT_OUTPUT: usize = 256 * 1024;

/// `tmux attach` in a pseudo terminal with 80 columns and 24 rows. Dropping it detaches the client.
#[derive(Debug)]
pub struct AttachedClient {
    client: ChildGuard,
    terminal: File,
    output: Arc<Mutex<Vec<u8>>>,
}

impl AttachedClient {
    pub(crate) fn start(server: &TestTmuxServer, session: &str) -> Self {
        let (terminal, program_side) = open_terminal();
        let tmux = server.command();
        // setsid sets the controlling terminal; Command cannot do that without unsafe code.
        let mut command = server.command_for("setsid");
        command.args(["-c", "tmux"]).args(tmux.get_args());
        command.args(["attach-session", "-t"]).arg(format!("={session}"));
        let share = || Stdio::from(program_side.try_clone().expect("a descriptor can be shared"));
        let client = ChildGuard::start(command.stdin(share()).stdout(share()).stderr(share()));
        let output = Arc::new(Mutex::new(Vec::new()));
        drain(terminal.try_clone().expect("a descriptor can be shared"), Arc::clone(&output));
        Self { client, terminal, output }
    }

    pub fn pid(&self) -> u32 {
        self.client.id()
    }

    /// Types keys, as a person would.
    #[track_caller]
    pub fn type_keys(&self, keys: &[u8]) {
        (&self.terminal).write_all(keys).expect("the terminal takes keys");
    }

    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) {
        set_size(&self.terminal, columns, rows);
    }

    /// The newest bytes that the client has written to its terminal.
    pub fn output(&self) -> Vec<u8> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the client is still running.
    pub fn is_attached(&mut self) -> bool {
        matches!(self.client.try_wait(), Ok(None))
    }
}

fn open_terminal() -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("the terminal belongs to this process");
    let path = ptsname(&terminal, Vec::new()).expect("the terminal has a name");
    let path = std::ffi::OsStr::from_bytes(path.to_bytes());
    let mut options = OpenOptions::new();
    let options = std::os::unix::fs::OpenOptionsExt::custom_flags(
        options.read(true).write(true),
        rustix::fs::OFlags::NOCTTY.bits().cast_signed(),
    );
    let program_side = options.open(path).expect("the program side of the terminal opens");
    let terminal = File::from(terminal);
    set_size(&terminal, 80, 24);
    (terminal, program_side)
}

fn set_size(terminal: &File, columns: u16, rows: u16) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal has a size");
}

/// Reads the output until the client ends. If the output were not read, the tmux server would block.
fn drain(mut terminal: File, output: Arc<Mutex<Vec<u8>>>) {
    thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..count]);
            let surplus = kept.len().saturating_sub(KEPT_OUTPUT);
            kept.drain(..surplus);
        }
    });
}
