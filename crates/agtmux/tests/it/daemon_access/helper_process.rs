//! Runs this test program again as a helper process.

use std::path::Path;
use std::process::Command;

/// The environment variable with the argument of a helper process. Helpers are tests with `#[ignore]`, which do nothing
/// if this variable is not set.
pub(crate) const HELPER_VARIABLE: &str = "AGTMUX_TEST_PART";

/// The argument, if this process is a helper.
pub(crate) fn helper_argument() -> Option<String> {
    std::env::var(HELPER_VARIABLE).ok()
}

/// Adds the arguments that run one helper; the program of the command is this test program or a copy of it.
pub(crate) fn run_as_helper(command: &mut Command, name: &str, value: &Path) {
    let name = format!("daemon_access::{name}");
    command.args(["--exact", &name, "--ignored", "--nocapture"]).env(HELPER_VARIABLE, value);
}

pub(crate) fn test_program() -> std::path::PathBuf {
    std::env::current_exe().expect("the path of the test program is known")
}
