//! What all reports have in common: how much is measured, on what, and where it is written.

#![allow(dead_code, reason = "each benchmark needs another part of it")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// `cargo test --benches` runs a benchmark as a test: then it only has to work.
pub(crate) fn is_quick() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    arguments.iter().any(|a| a == "--quick") || !arguments.iter().any(|a| a == "--bench")
}

/// What the figures depend on, but nothing that would tell whose machine it is. Asked before anything is measured: others
/// that are busy then make everything slower.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    let tmux = Command::new("tmux").arg("-V").output().map(|output| output.stdout).unwrap_or_default();
    let tmux = String::from_utf8_lossy(&tmux).trim().to_owned();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let build = if cfg!(debug_assertions) { ", a debug build beside other work" } else { "" };
    format!("{cores} cores, Linux {}, {tmux}; its load before the run was {load}{build}", kernel.join("."))
}

/// Whether a goal was met, in a table.
pub(crate) fn met(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "",
    }
}

/// Puts a report into `docs/`.
pub(crate) fn write(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    eprintln!("written to docs/{name}");
}
