//! Runs a command on a pseudo terminal.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::ChildGuard;
use crate::agtmux::SOON;

/// Runs the command on a terminal of this width and returns its output. Fails the test if the command fails.
#[track_caller]
pub fn printed_on_terminal(command: &mut Command, columns: u16) -> Vec<u8> {
    let (printed, status) = run_on_terminal(command, columns);
    assert!(status.success(), "{}", String::from_utf8_lossy(&printed));
    printed
}

/// Runs the command on a terminal of this width and returns its output and its exit status.
#[track_caller]
pub fn run_on_terminal(command: &mut Command, columns: u16) -> (Vec<u8>, ExitStatus) {
    let (terminal, program_side) = open(columns);
    let share = || Stdio::from(program_side.try_clone().expect("a descriptor can be shared"));
    let mut running = ChildGuard::start(command.stdin(share()).stdout(share()).stderr(share()));
    // `command` would keep the terminal open while it exists, so replace its descriptors.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    drop(program_side);
    let (sender, printed) = mpsc::channel();
    thread::spawn(move || sender.send(read_all(terminal)));
    let printed = printed.recv_timeout(SOON).expect("the command ends and closes its terminal");
    (printed, running.wait().expect("the command was started"))
}

fn open(columns: u16) -> (File, File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo terminal");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("the terminal can be unlocked");
    let size = Winsize { ws_col: columns, ws_row: 50, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("a terminal has a size");
    let path = ptsname(&terminal, Vec::new()).expect("the terminal has a name");
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed());
    let program_side = options.open(OsStr::from_bytes(path.to_bytes())).expect("the other side opens");
    (File::from(terminal), program_side)
}

/// Reads until a read fails. A read fails when the other side of the terminal is closed.
fn read_all(mut terminal: File) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 8192]);
    while let Ok(count @ 1..) = terminal.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
    }
    all
}
