//! Reports tests that are skipped.

use std::fs::OpenOptions;
use std::io::Write;
use std::{env, thread};

use crate::agtmux::soak;
use crate::host::hosts_unavailable_reason;

/// This environment variable contains the path of a file that collects the skipped tests. `scripts/test` sets the
/// variable and prints the file at the end.
const FILE_VARIABLE: &str = "AGTMUX_SKIPPED_TESTS";

/// Reports that this test, or a part of it, is skipped. The caller must then return.
pub fn skip(reason: &str) {
    report("skipped", reason);
}

/// Outside soak runs, reports a skip and returns true. If this function returns true, the caller must skip the test, or
/// the part of it that is only for soak runs.
pub fn skip_outside_soak() -> bool {
    let skipped = !soak();
    if skipped {
        report("soak", "runs only with AGTMUX_SOAK=1");
    }
    skipped
}

/// If test hosts cannot run on this machine, reports the skip and returns true. The caller must then return.
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
        // Write each line with one call, because other tests write to the file at the same time.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file of skipped tests is writable");
    }
}

/// The name of this test. nextest runs each test in its own process and passes the name as an argument. `cargo test`
/// runs each test in its own thread, which has the name of the test.
fn test_name() -> String {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--exact") {
        return arguments.into_iter().find(|argument| !argument.starts_with('-')).unwrap_or_default();
    }
    thread::current().name().unwrap_or("a test").to_owned()
}
