//! Tests that cannot run on this machine.

use std::fs::OpenOptions;
use std::io::Write;
use std::{env, thread};

use crate::agtmux::soak;
use crate::host::hosts_unavailable_reason;

/// The file that collects the skipped tests. `scripts/test` sets it and prints the file at the end.
const FILE_VARIABLE: &str = "AGTMUX_SKIPPED_TESTS";

/// Reports that this test, or a part of it, is skipped, and why. The test then returns.
pub fn skip(reason: &str) {
    report("skipped", reason);
}

/// Reports that this test, or a part of it, runs only in the soak run, unless this is one. Returns whether to skip it.
pub fn skip_outside_soak() -> bool {
    let skipped = !soak();
    if skipped {
        report("soak", "runs only with AGTMUX_SOAK=1");
    }
    skipped
}

/// Skips the test if test hosts cannot run here. Returns whether to skip it.
pub fn skip_without_hosts() -> bool {
    let reason = hosts_unavailable_reason();
    reason.iter().for_each(|reason| skip(reason));
    reason.is_some()
}

fn report(kind: &str, reason: &str) {
    let line = format!("{kind} {}: {}\n", test_name(), reason.trim().replace('\n', " "));
    // The test harness does not capture what is written to stderr directly. A closed stderr is not an error.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = env::var_os(FILE_VARIABLE) {
        let file = OpenOptions::new().append(true).create(true).open(file);
        // One write per line: tests run at the same time.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file of skipped tests is writable");
    }
}

/// nextest runs one test per process, `cargo test` one per thread.
fn test_name() -> String {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--exact") {
        return arguments.into_iter().find(|argument| !argument.starts_with('-')).unwrap_or_default();
    }
    thread::current().name().unwrap_or("a test").to_owned()
}
