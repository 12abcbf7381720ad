//! Stores an event in a separate process. Before an event is stored, its secrets are redacted, which takes longer than
//! an agent should wait for a hook.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use agtmux_api::paths::Paths;
use jiff::Timestamp;

use super::spool;

/// The argument that makes `agtmux hook` store the event that it reads from stdin.
pub(super) const KEEP_FLAG: &str = "--keep";

const MAX_BODY: u64 = 2 << 20;

/// Starts the process that stores the event, without waiting for the end of that process. The process has its own
/// process group, so that it survives the agent.
pub(super) fn spawn_spooler(body: &[u8], at: Timestamp) -> io::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["hook", KEEP_FLAG, &at.as_nanosecond().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let stdin = child.stdin.take();
    // A write error is ignored: storing the event here as well could store it twice.
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
