//! Facts about a pane besides its screen: title, state and processes.

use agtmux_api::wire::Explanation;
use agtmux_api::{SCHEMA_VERSION, VERSION};
use agtmux_core::text;
use agtmux_tmux::Capture;
use agtmux_tmux::platform::{ProcessInfo, process_table};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;

pub(super) fn pane_facts(explanation: &Explanation, capture: &Capture) -> Value {
    let tree = process_table(false).trees(&[capture.pane_pid]).ok().and_then(|mut trees| trees.pop()?);
    json!({
        "schema_version": SCHEMA_VERSION,
        "agtmux": VERSION,
        "recorded_at": jiff::Timestamp::now(),
        "agent_type": explanation.agent_type,
        "state": explanation.state,
        "title": text::from_bytes(&capture.title),
        "pane_pid": capture.pane_pid,
        "foreground_group": tree.as_ref().and_then(|tree| tree.foreground_pgrp),
        "processes": tree.as_ref().map(|tree| tree.processes.iter().map(process).collect::<Vec<_>>()),
    })
}

/// A process as JSON, with its arguments, because they show which agent runs. Omits the process's environment
/// variables.
fn process(process: &ProcessInfo) -> Value {
    json!({
        "pid": process.pid,
        "ppid": process.ppid,
        "group": process.pgrp,
        "stopped": process.stopped,
        "zombie": process.zombie,
        "name": text::from_bytes(&process.name),
        "argv": process.argv.iter().map(|arg| text::from_bytes(arg)).collect::<Vec<_>>(),
        "exe": process.exe.as_ref().map(|exe| text::from_bytes(exe.as_os_str().as_bytes())),
    })
}
