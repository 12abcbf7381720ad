//! Pseudo terminals: which one controls a process, and which process has its other end.

use super::procfs::{numbered_entries, read_limited};
use super::stat;

const MAX_STAT_BYTES: u64 = 2048;
const MAX_FDINFO_BYTES: u64 = 4096;
/// The major device numbers of pseudo terminals begin here. Linux uses only the first one for new terminals.
const PTS_MAJOR: u32 = 136;

/// The number N of the controlling terminal `/dev/pts/N` of a process.
pub(super) fn controlling(pid: u32) -> Option<u32> {
    let line = read_limited(&format!("/proc/{pid}/stat"), MAX_STAT_BYTES).ok()??;
    // The name in parentheses can contain any bytes. The fields after it: state, parent, group, session, terminal.
    let after_name = line.iter().rposition(|&byte| byte == b')')? + 1;
    let mut fields = line[after_name..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    terminal_number(stat::number(fields.nth(4)?)?)
}

/// The number N of the terminal `/dev/pts/N` with this device number.
fn terminal_number(device: u32) -> Option<u32> {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    (major == PTS_MAJOR).then_some(minor)
}

/// Whether the process has the other end of `/dev/pts/N` open.
pub(super) fn holds(holder: u32, number: u32) -> bool {
    let Ok(files) = numbered_entries(&format!("/proc/{holder}/fdinfo")) else { return false };
    files.into_iter().any(|fd| {
        let info = read_limited(&format!("/proc/{holder}/fdinfo/{fd}"), MAX_FDINFO_BYTES).ok().flatten();
        let index = |line: &[u8]| line.strip_prefix(b"tty-index:").and_then(|index| stat::number(index.trim_ascii()));
        info.is_some_and(|info| info.split(|&byte| byte == b'\n').find_map(index) == Some(number))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;
    use crate::platform::process_table;

    #[test]
    fn device_numbers_of_terminals_are_decoded() {
        assert_eq!(terminal_number(0x8803), Some(3));
        assert_eq!(terminal_number(0x0010_8801), Some(257));
        assert_eq!(terminal_number(0x0401), None, "a console");
        assert_eq!(terminal_number(0), None);
    }

    #[test]
    fn the_holder_of_the_other_end_is_the_keyboard() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("our terminal");
        let path = ptsname(&master, Vec::new()).expect("it has a name");
        let tty = std::fs::File::options().read(true).write(true).open(path.to_str().expect("ASCII"));
        let tty = tty.expect("the terminal opens");
        let (own, table) = (std::process::id(), process_table(false));
        let start = |program: &str, arguments: &[&str], stdin: Stdio| {
            let mut command = Command::new(program);
            let child = command.args(arguments).stdin(stdin).stdout(Stdio::null()).process_group(0).spawn();
            child.expect("the program starts")
        };
        // setsid makes the terminal the controlling one.
        let share = || Stdio::from(tty.try_clone().expect("shared"));
        let mut typed = start("setsid", &["-wc", "cat"], share());
        let mut elsewhere = start("cat", &[], Stdio::from(tty.try_clone().expect("shared")));
        let child_of = |pid: u32| table.trees(&[pid]).ok()?.pop()??.processes.into_iter().find(|p| p.name == b"cat");
        let cat = agtmux_testkit::wait_for("cat in a session of its own", Duration::from_secs(20), || {
            child_of(typed.id()).filter(|cat| controlling(cat.pid).is_some())
        });
        assert!(table.has_keyboard_of(cat.pid, own));
        assert!(!table.has_keyboard_of(cat.pid, 1) && !table.has_keyboard_of(cat.pid, typed.id()), "another holder");
        assert!(!table.has_keyboard_of(elsewhere.id(), own), "it is not the controlling terminal");
        assert!(table.runs_this_program(own) && !table.runs_this_program(cat.pid));
        for child in [&mut elsewhere, &mut typed] {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
        let cat = rustix::process::Pid::from_raw(cat.pid.cast_signed()).expect("a pid");
        rustix::process::kill_process(cat, rustix::process::Signal::KILL).expect("it still runs");
    }
}
