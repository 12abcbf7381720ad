//! Reads the ancestors of a process, and selects those that show who started the process.

use std::io;

use agtmux_agents::{AgentRegistry, ProcessFacts};
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};

use crate::observe;

/// At most this many processes are checked, from the caller upwards. If the chain of ancestors reaches this length, the
/// caller's origin counts as unknown.
pub(super) const MAX_ANCESTORS: usize = 64;

/// Programs that adopt the children of ended processes, besides init. The name of such a program says nothing about the
/// process that started the child.
const ADOPTING_PROGRAMS: [&[u8]; 6] = [b"init", b"tini", b"dumb-init", b"docker-init", b"catatonit", b"s6-svscan"];

/// The process and its ancestors, the process itself first. Empty if the process table cannot be read.
pub(super) fn ancestors(processes: &dyn ProcessTable, pid: u32) -> Vec<ProcessInfo> {
    try_ancestors(processes, pid).unwrap_or_default()
}

/// The process and its ancestors, the process itself first. Fails if the process table cannot be read, because an
/// incomplete chain could hide an agent.
pub(super) fn try_ancestors(processes: &dyn ProcessTable, pid: u32) -> io::Result<Vec<ProcessInfo>> {
    let mut ancestry: Vec<ProcessInfo> = Vec::new();
    let mut next = pid;
    while ancestry.len() < MAX_ANCESTORS && next > 1 {
        let Some(process) = processes.try_process(next)? else { break };
        next = process.ppid;
        ancestry.push(process);
    }
    Ok(ancestry)
}

/// The part of the chain before the first adopting program. Each process in this part was started by the next one.
pub(super) fn own_chain(ancestry: &[ProcessInfo]) -> &[ProcessInfo] {
    let adopter = ancestry.iter().skip(1).position(adopts_children);
    &ancestry[..adopter.map_or(ancestry.len(), |at| at + 1)]
}

fn adopts_children(process: &ProcessInfo) -> bool {
    let is_user_manager = process.name == b"systemd" && process.argv.iter().any(|argument| argument == b"--user");
    is_user_manager || ADOPTING_PROGRAMS.contains(&process.name.as_slice())
}

/// The type of the outermost agent in this chain.
pub(super) fn agent_among(registry: &AgentRegistry, ancestry: &[ProcessInfo]) -> Option<String> {
    let facts: Vec<ProcessFacts<'_>> = ancestry.iter().rev().map(observe::process_facts).collect();
    registry.identify(&facts, None).map(|found| found.agent_type.to_string())
}

#[cfg(test)]
pub(super) fn test_process(pid: u32, ppid: u32, start: u64, name: &str) -> ProcessInfo {
    ProcessInfo {
        pid,
        ppid,
        pgrp: pid,
        tpgid: None,
        start,
        stopped: false,
        zombie: false,
        name: name.into(),
        argv: vec![name.into()],
        exe: None,
    }
}

/// A process table for tests, with parents, users and control groups set by the test.
#[cfg(test)]
#[derive(Default)]
pub(super) struct TestTable {
    pub(super) has_no_details: bool,
    pub(super) parents: std::collections::HashMap<u32, u32>,
    /// The process whose entry cannot be read.
    pub(super) unreadable: Option<u32>,
    pub(super) uids: std::collections::HashMap<u32, u32>,
    pub(super) groups: std::collections::HashMap<u32, &'static str>,
}

#[cfg(test)]
impl ProcessTable for TestTable {
    fn foreground_pgrp(&self, _: u32) -> Option<u32> {
        None
    }

    fn start_time(&self, _: u32) -> Option<u64> {
        None
    }

    fn trees(&self, roots: &[u32]) -> std::io::Result<Vec<Option<agtmux_tmux::platform::PaneProcesses>>> {
        Ok(vec![None; roots.len()])
    }

    fn try_process(&self, pid: u32) -> io::Result<Option<ProcessInfo>> {
        if self.unreadable == Some(pid) {
            return Err(io::Error::other("too many open files"));
        }
        Ok(self.parents.get(&pid).map(|parent| test_process(pid, *parent, 5, "sh")))
    }

    fn reports_details(&self) -> bool {
        !self.has_no_details
    }

    fn is_stopped(&self, _: u32) -> bool {
        false
    }

    fn uid(&self, pid: u32) -> Option<u32> {
        self.uids.get(&pid).copied()
    }

    fn control_group(&self, pid: u32) -> Option<String> {
        self.groups.get(&pid).map(|&group| group.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_cannot_be_read_is_an_error_and_not_a_short_chain() {
        let parents = std::collections::HashMap::from([(50, 40), (40, 30), (30, 1)]);
        let readable = TestTable { parents, ..TestTable::default() };
        assert_eq!(try_ancestors(&readable, 50).expect("readable").len(), 3);
        let exhausted = TestTable { unreadable: Some(30), ..readable };
        assert!(try_ancestors(&exhausted, 50).is_err());
        assert!(ancestors(&exhausted, 50).is_empty());
    }

    #[test]
    fn a_program_that_adopts_orphans_is_not_their_parent() {
        let manager = ProcessInfo {
            argv: vec![b"/usr/lib/systemd/systemd".to_vec(), b"--user".to_vec()],
            ..test_process(900, 1, 10, "systemd")
        };
        let chain = [test_process(50, 40, 90, "agtmux"), test_process(40, 900, 80, "sh"), manager];
        assert_eq!(own_chain(&chain).len(), 2);
        assert_eq!(own_chain(&chain[..2]).len(), 2);
        let in_container = [test_process(50, 7, 90, "agtmux"), test_process(7, 1, 1, "tini")];
        assert_eq!(own_chain(&in_container).len(), 1);
    }
}
