//! Runs TypeScript programs with any version of node.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{TestWorld, skip};

/// The exit code of `scripts/esbuild` when esbuild is not installed.
const SKIP_EXIT_CODE: i32 = 77;

/// Returns the file to pass to node in order to run this TypeScript program. If node can run TypeScript, this is the
/// program itself, otherwise a JavaScript bundle. If node or esbuild is missing, reports a skipped test and returns
/// None.
#[track_caller]
pub fn runnable_typescript(world: &TestWorld, program: &Path) -> Option<PathBuf> {
    let Ok(features) = Command::new("node").args(["-p", "process.features.typescript"]).output() else {
        skip("node is not installed");
        return None;
    };
    if matches!(features.stdout.trim_ascii(), b"strip" | b"transform") {
        return Some(program.to_owned());
    }
    let bundle = world.home().join("bundle.mjs");
    let mut esbuild = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/esbuild"));
    esbuild
        .arg(program)
        .args(["--bundle", "--platform=node", "--format=esm", "--log-level=warning"])
        // Only Pi has its modules.
        .arg("--external:@earendil-works/*")
        .arg(format!("--outfile={}", bundle.display()))
        .stdin(Stdio::null());
    let done = esbuild.output().expect("the script can be started");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.code() == Some(SKIP_EXIT_CODE) {
        skip(&format!("node before 22.18 runs no TypeScript, and {errors}"));
        return None;
    }
    assert!(done.status.success(), "{errors}");
    Some(bundle)
}
