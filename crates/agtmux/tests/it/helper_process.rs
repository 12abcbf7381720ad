//! Runs this test program again as a helper process.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use agtmux_testkit::{TestWorld, skip};

/// The environment variable with the argument of a helper process. Helpers are tests with `#[ignore]`, which do nothing
/// if this variable is not set.
pub(crate) const HELPER_VARIABLE: &str = "AGTMUX_TEST_PART";

/// The argument, if this process is a helper.
pub(crate) fn helper_argument() -> Option<String> {
    std::env::var(HELPER_VARIABLE).ok()
}

/// Adds the arguments that run one helper, named with its module. The program of the command is this test program or a
/// copy of it.
pub(crate) fn run_as_helper(command: &mut Command, name: &str, value: impl AsRef<OsStr>) {
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(HELPER_VARIABLE, value);
}

/// A command that runs a helper as another user. The caller must be root.
pub(crate) fn helper_of_user(world: &TestWorld, uid: u32, name: &str, value: impl AsRef<OsStr>) -> Command {
    let program_copy = world.dir().join("program_copy");
    if !program_copy.exists() {
        let copied = world.command("cp").arg(test_program()).arg(&program_copy).status();
        assert!(copied.is_ok_and(|status| status.success()), "the test program can be copied");
    }
    fs::set_permissions(world.dir(), fs::Permissions::from_mode(0o711)).expect("the world is ours");
    let mut command = world.command("setpriv");
    command.arg(format!("--reuid={uid}")).arg("--clear-groups").arg(&program_copy);
    run_as_helper(&mut command, name, value);
    command
}

/// Skips the test and returns false if this process cannot start processes of other users.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("only root can switch to another user");
    }
    root
}

pub(crate) fn test_program() -> std::path::PathBuf {
    std::env::current_exe().expect("the path of the test program is known")
}
