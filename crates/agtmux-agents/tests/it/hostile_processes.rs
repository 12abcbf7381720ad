//! Processes with arbitrary names, arguments and ids: identifying an agent never panics and finds only an existing
//! process.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agtmux_agents::{AgentRegistry, ProcessFacts};
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "claude",
        "node",
        "python3",
        "-m",
        "-c",
        "--",
        "sh",
        "sudo",
        "/",
        "-",
        "",
        " (deleted)",
        "*/bin/*",
        "npm exec ",
    ]);
    prop_oneof![word.prop_map(|w| w.as_bytes().to_vec()), prop::collection::vec(any::<u8>(), 0..40)]
}

#[derive(Debug)]
struct RandomProcess {
    /// pid, ppid, pgrp: small numbers, so that cycles, orphans and duplicates occur.
    ids: (u32, u32, u32),
    tpgid: Option<u32>,
    flags: (bool, bool),
    name: Vec<u8>,
    argv: Vec<Vec<u8>>,
    exe: Option<Vec<u8>>,
}

fn random_process() -> impl Strategy<Value = RandomProcess> {
    let ids = (0u32..6, 0u32..6, 0u32..6);
    let argv = prop::collection::vec(bytes(), 0..5);
    (ids, prop::option::of(0u32..6), any::<(bool, bool)>(), bytes(), argv, prop::option::of(bytes()))
        .prop_map(|(ids, tpgid, flags, name, argv, exe)| RandomProcess { ids, tpgid, flags, name, argv, exe })
}

proptest! {
    #[test]
    fn identify_accepts_any_process_table(rows in prop::collection::vec(random_process(), 0..8), foreground in prop::option::of(0u32..6)) {
        let facts: Vec<ProcessFacts<'_>> = rows.iter().map(|row| ProcessFacts {
            pid: row.ids.0,
            ppid: row.ids.1,
            pgrp: row.ids.2,
            tpgid: row.tpgid,
            stopped: row.flags.0,
            zombie: row.flags.1,
            name: &row.name,
            argv: &row.argv,
            exe: row.exe.as_deref().map(|path| Path::new(OsStr::from_bytes(path))),
        }).collect();
        if let Some(found) = AgentRegistry::builtin().identify(&facts, foreground) {
            let alive = facts.iter().any(|p| p.pid == found.pid && !p.zombie && p.stopped == found.suspended);
            prop_assert!(alive, "found a process that does not exist: {found:?}");
        }
    }
}
