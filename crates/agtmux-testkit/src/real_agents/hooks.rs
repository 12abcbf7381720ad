//! Installs agtmux's hooks in an agent's settings, and a program that saves hook payloads.

use std::fs;
use std::path::{Path, PathBuf};

use super::ConformanceAgent;
use super::sandbox::write_program;
use crate::TestWorld;

/// Runs `agtmux setup` as a user would.
pub fn install_agtmux_hooks(world: &TestWorld, agent: &dyn ConformanceAgent) {
    let output = world.agtmux().args(["setup", "--agent", agent.name(), "--yes"]).output();
    let output = output.expect("agtmux can be started");
    assert!(output.status.success(), "agtmux setup: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes a program that saves each hook payload to its own file. The file is named by the time of arrival.
pub fn write_payload_saver(world: &TestWorld, dir: &Path) -> PathBuf {
    fs::create_dir(dir).expect("the world is writable");
    let program = world.dir().join("save-hook");
    let text = format!("#!/bin/sh\nexec cat > \"{}/$(date +%s%N)-$1-$$.json\"\n", dir.display());
    write_program(world, &program, &text);
    program
}
