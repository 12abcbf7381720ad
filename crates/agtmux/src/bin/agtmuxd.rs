//! The daemon in the foreground, for systemd and other supervisors. `agtmux daemon run` is the same.

use std::process::ExitCode;

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use agtmux_daemon::{DaemonError, LogTo, RunOptions};
use clap::Parser;

/// Watches tmux and serves what it sees on a private socket. Logs to stderr; ends on SIGTERM.
///
/// Started by hand rarely: every `agtmux` command that needs it starts it.
#[derive(Debug, Parser)]
#[command(name = "agtmuxd", version, after_help = "Exit codes: 0 stopped, 1 failed, 2 bad configuration")]
struct Args {}

const FAILED: u8 = 1;
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    Args::parse();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            eprintln!("agtmuxd: {message}");
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<(), (u8, String)> {
    let paths = Paths::from_env().map_err(|error| (BAD_CONFIGURATION, error.to_string()))?;
    let config = Config::load(&paths.config).map_err(|error| (BAD_CONFIGURATION, error.to_string()))?;
    let options = RunOptions { paths, config, log_to: LogTo::Stderr };
    agtmux_daemon::run(options, || {}).map_err(|error| match error {
        DaemonError::AlreadyRunning { .. } => (FAILED, format!("{error}\n  try: agtmux daemon status")),
        DaemonError::Paths(_) => (BAD_CONFIGURATION, error.to_string()),
        _ => (FAILED, error.to_string()),
    })
}
