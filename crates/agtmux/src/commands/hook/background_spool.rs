//! To keep an event its secrets are taken out first, which takes longer than an agent should wait. So another process
//! does it, and the hook ends.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use agtmux_api::paths::Paths;
use jiff::Timestamp;

use super::spool;

/// How that process is called.
pub(super) const KEEP_FLAG: &str = "--keep";

const MAX_BODY: u64 = 2 << 20;

/// It is not waited for, and has a group of its own: what ends the agent does not end it.
pub(super) fn spawn_spooler(body: &[u8], at: Timestamp) -> io::Result<()> {
    let mut keeper = Command::new(std::env::current_exe()?)
        .args(["hook", KEEP_FLAG, &at.as_nanosecond().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let stdin = keeper.stdin.take();
    // From here on it has the event, or the machine is beyond help: keeping it twice would be worse.
    let _ = stdin.map(|mut stdin| stdin.write_all(body));
    Ok(())
}

pub(super) fn run(words: &[OsString]) {
    let time = words.first().and_then(|word| word.to_str()?.parse().ok());
    let at = time.and_then(|ns| Timestamp::from_nanosecond(ns).ok()).unwrap_or_else(Timestamp::now);
    let mut body = Vec::new();
    let read = io::stdin().take(MAX_BODY).read_to_end(&mut body);
    if let (Ok(_), Ok(paths)) = (read, Paths::from_env()) {
        spool::store(&paths, &body, at);
    }
}
