//! The facts about a process, and the agent that a pane shows.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agtmux_core::ids::AgentType;

/// One process of a pane's process tree, as the operating system reports it. Every field may contain hostile data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFacts<'a> {
    pub pid: u32,
    pub ppid: u32,
    pub pgrp: u32,
    /// The foreground process group of the process's own terminal. That terminal may differ from the pane's terminal,
    /// because programs such as sudo and script create another terminal. None if the process has no terminal, or if
    /// the group is not known.
    pub tpgid: Option<u32>,
    pub stopped: bool,
    pub zombie: bool,
    /// The short name that the kernel reports (`comm`).
    pub name: &'a [u8],
    pub argv: &'a [Vec<u8>],
    pub exe: Option<&'a Path>,
}

impl<'a> ProcessFacts<'a> {
    /// The path of the executable, without the suffix ` (deleted)`. Linux adds this suffix after an update has replaced
    /// the file.
    pub(crate) fn exe_path(&self) -> Option<&'a [u8]> {
        let path = self.exe?.as_os_str().as_bytes();
        Some(path.strip_suffix(b" (deleted)").unwrap_or(path))
    }
}

/// The agent that a pane shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedAgent {
    pub agent_type: AgentType,
    pub pid: u32,
    /// Whether the process is stopped, as after Ctrl-Z.
    pub suspended: bool,
    /// Whether the agent was started for a single turn without user interaction. Such an agent is in the
    /// state `running` until its process ends.
    pub headless: bool,
}
