//! Functions shared by all benchmark reports.

#![allow(dead_code, reason = "each benchmark uses a part of this module")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether to run the short version: with `--quick`, or when `cargo test --benches` runs the benchmark as a test.
pub(crate) fn is_quick() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    arguments.iter().any(|a| a == "--quick") || !arguments.iter().any(|a| a == "--bench")
}

/// Describes the machine without identifying it. Called before the first measurement, so that the load is that of other
/// programs.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    let tmux = Command::new("tmux").arg("-V").output().map(|output| output.stdout).unwrap_or_default();
    let tmux = String::from_utf8_lossy(&tmux).trim().to_owned();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let build = if cfg!(debug_assertions) { "; debug build on a machine with other load" } else { "" };
    format!("{cores} cores, Linux {}, {tmux}; load before the run: {load}{build}", kernel.join("."))
}

/// The table cell for a goal.
pub(crate) fn met(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "",
    }
}

/// Writes a report to `docs/`.
pub(crate) fn write(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    eprintln!("written to docs/{name}");
}
