//! Starts the child as a shell does, including scripts without `#!`.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use rustix::fs::{Access, access};

const SHELL: &str = "/bin/sh";
/// The search path if PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// How many bytes of a file are read to recognise a script.
const SNIFF_BYTES: u64 = 128;

/// Starts the program with these variables and this signal mask. `std::process` cannot set a signal mask, so the child
/// would inherit the blocked signals of this process.
pub(super) fn spawn(
    words: &[OsString],
    variables: impl Iterator<Item = (OsString, OsString)>,
    mask: &SigSet,
) -> io::Result<Pid> {
    let variable = |(name, value): (OsString, OsString)| {
        c_string([name.into_vec(), value.into_vec()].join(OsStr::new("=").as_bytes()))
    };
    let environment: Vec<CString> = variables.map(variable).collect::<io::Result<_>>()?;
    match start(words, &environment, mask) {
        Err(error) if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => {
            let script = words.first().and_then(|program| script(program)).ok_or(error)?;
            let by_shell: Vec<OsString> =
                [SHELL.into(), script.into()].into_iter().chain(words[1..].iter().cloned()).collect();
            start(&by_shell, &environment, mask)
        }
        started => started,
    }
}

fn start(words: &[OsString], environment: &[CString], mask: &SigSet) -> io::Result<Pid> {
    let args: Vec<CString> = words.iter().map(|word| c_string(word.as_bytes().to_vec())).collect::<io::Result<_>>()?;
    let program = args.first().ok_or(io::ErrorKind::NotFound)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_sigmask(mask)?;
    // Rust's runtime ignores SIGPIPE before `main`, so the inherited disposition is unknown. Use the default.
    attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF)?;
    Ok(posix_spawnp(program, &PosixSpawnFileActions::init()?, &attributes, &args, environment)?)
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The path of the program, if the file is text. The kernel does not start a text file without `#!`, but a shell does.
fn script(program: &OsStr) -> Option<PathBuf> {
    let path = if program.as_bytes().contains(&b'/') { program.into() } else { find_in_path(program)? };
    is_text(&path).then_some(path)
}

fn find_in_path(program: &OsStr) -> Option<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    // An empty entry stands for the current directory.
    let mut files = std::env::split_paths(&search_path).map(|dir| Path::new(".").join(dir).join(program));
    files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// Whether the file is text. The kernel also refuses a binary for another architecture, which must not be passed to a
/// shell.
fn is_text(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SNIFF_BYTES).read_to_end(&mut beginning));
    let first_line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !first_line.contains(&0)
}
