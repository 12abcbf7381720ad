//! What is known of a process, and what it was found to be.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agtmux_core::ids::AgentType;

/// One process of a pane's tree, as the system reports it. Every byte of it may be hostile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessFacts<'a> {
    pub pid: u32,
    pub ppid: u32,
    pub pgrp: u32,
    /// The foreground process group of the process's own terminal, which need not be the pane's: sudo and script make
    /// another. None when it has no terminal, or when that is not known.
    pub tpgid: Option<u32>,
    pub stopped: bool,
    pub zombie: bool,
    /// The kernel's short name of it.
    pub name: &'a [u8],
    pub argv: &'a [Vec<u8>],
    pub exe: Option<&'a Path>,
}

impl<'a> ProcessFacts<'a> {
    /// The path of the executable, also when an update has replaced the file since.
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
    /// Stopped, as after Ctrl-Z.
    pub suspended: bool,
    /// Started for one turn, with nobody to talk to: it works for as long as it lives.
    pub headless: bool,
}
