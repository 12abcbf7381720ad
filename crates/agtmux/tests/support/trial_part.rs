//! This test program once more, in the part of somebody else.

use std::path::Path;
use std::process::Command;

/// Runs one of our own tests, which is marked as ignored and does nothing without this variable.
pub(crate) const HELPER_VARIABLE: &str = "AGTMUX_TEST_PART";

/// The variable's value, when this process plays the part.
pub(crate) fn helper_argument() -> Option<String> {
    std::env::var(HELPER_VARIABLE).ok()
}

/// Makes a command play the part: `program` is this test program, or a copy of it.
pub(crate) fn run_as_helper(command: &mut Command, name: &str, value: &Path) {
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(HELPER_VARIABLE, value);
}

pub(crate) fn test_program() -> std::path::PathBuf {
    std::env::current_exe().expect("a running program has a file")
}
