//! Log output: stderr or a file.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use agtmux_api::config::LogLevel;
use tracing_subscriber::EnvFilter;

/// If the log file is larger than this when the daemon starts, the daemon renames it to `*.log.old` and begins a new
/// one. An earlier `*.log.old` is overwritten.
const MAX_LOG_BYTES: u64 = 4 << 20;

pub(crate) fn to_stderr(level: LogLevel) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)).with_writer(io::stderr);
    // Fails only if a subscriber is already set, as in tests that start several daemons.
    let _ = builder.with_ansi(io::stderr().is_terminal() && !plain).try_init();
}

pub(crate) fn to_file(level: LogLevel, path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| meta.len() > MAX_LOG_BYTES) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)).with_ansi(false);
    let _ = builder.with_writer(Mutex::new(file)).try_init();
    Ok(())
}

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::try_from_env("AGTMUX_LOG").unwrap_or_else(|_| EnvFilter::new(level.as_str()))
}
