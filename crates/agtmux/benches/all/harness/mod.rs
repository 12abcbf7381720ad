//! What all benchmarks share: the arguments, worlds with a daemon, times and reports.

pub(crate) mod bench_agent;
pub(crate) mod connection;
pub(crate) mod meter;
pub(crate) mod stats;
pub(crate) mod world;

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// One run of a benchmark.
pub(crate) struct BenchRun {
    quick: bool,
    /// Describes the machine without identifying it. The description includes the load of the machine before the first
    /// measurement. This load comes only from other programs.
    pub(crate) machine: String,
}

impl BenchRun {
    /// Selects the short form of the benchmarks if `--quick` is given, or if `cargo test --benches` runs them as tests.
    pub(crate) fn start() -> Self {
        let has = |wanted: &str| env::args().any(|argument| argument == wanted);
        Self { quick: has("--quick") || !has("--bench"), machine: machine() }
    }

    pub(crate) fn plan<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Prints the report. A full run also writes it to `docs/`.
    pub(crate) fn finish(&self, name: &str, text: &str) {
        println!("{text}");
        if self.quick {
            return;
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        eprintln!("written to docs/{name}");
    }
}

/// The benchmarks that the arguments name, or all. The error is the first unknown name.
pub(crate) fn selected<'a>(names: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let named: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if named.is_empty() {
        return Ok(names.to_vec());
    }
    named.into_iter().map(|word| names.iter().copied().find(|name| *name == word).ok_or(word)).collect()
}

fn machine() -> String {
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

/// The table cell that says whether a goal is met.
pub(crate) fn met(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "",
    }
}

/// A time below `limit` that differs in each round, so that a measurement does not synchronize with a timer.
pub(crate) fn spread(round: usize, limit: Duration) -> Duration {
    let mixed = (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(mixed % u64::try_from(limit.as_millis()).expect("the limit fits"))
}
