//! This test program once more, in the part of somebody else.

use std::path::Path;
use std::process::Command;

/// Runs one of our own tests, which is marked as ignored and does nothing without this variable.
pub(crate) const PART: &str = "AGTMUX_TEST_PART";

/// The variable's value, when this process plays the part.
pub(crate) fn played() -> Option<String> {
    std::env::var(PART).ok()
}

/// Makes a command play the part: `program` is this test program, or a copy of it.
pub(crate) fn cast(command: &mut Command, name: &str, value: &Path) {
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(PART, value);
}

pub(crate) fn this_program() -> std::path::PathBuf {
    std::env::current_exe().expect("a running program has a file")
}
