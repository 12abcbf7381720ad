use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

/// No more processes than this are listed per pane; those nearest to the pane's first process are kept.
pub const MAX_TREE: usize = 512;

/// One process as the kernel shows it. All text comes from the process itself and may be any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    pub ppid: u32,
    pub pgrp: u32,
    /// The foreground process group of its own terminal, which need not be the pane's: sudo and script make another.
    pub tpgid: Option<u32>,
    /// When it started, in a unit of the platform: together with the pid it names one process of this boot.
    pub start: u64,
    /// Stopped by a signal or by a tracer.
    pub stopped: bool,
    /// Ended, but not yet waited for.
    pub zombie: bool,
    /// The short name (`comm`): cut to 15 bytes on Linux.
    pub name: Vec<u8>,
    /// Empty for a zombie. `ps` does not tell where an argument ends: the portable table splits at blanks.
    pub argv: Vec<Vec<u8>>,
    pub exe: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneProcesses {
    /// The process group that owns the pane's terminal.
    pub foreground_pgrp: Option<u32>,
    /// The pane's first process and its descendants, parents before children, at most [`MAX_TREE`].
    pub processes: Vec<ProcessInfo>,
}

/// Reads what runs. All methods block, on Linux for microseconds, elsewhere for as long as `ps` takes.
pub trait ProcessTable: Send + Sync {
    /// The foreground process group of this process's terminal; `None` when the process is gone or has no terminal.
    /// Cheap on Linux: one read.
    fn foreground_pgrp(&self, pid: u32) -> Option<u32>;

    fn start_time(&self, pid: u32) -> Option<u64>;

    /// One tree per root, in the order of the roots; `None` for a root that is gone.
    fn trees(&self, roots: &[u32]) -> Vec<Option<PaneProcesses>>;

    /// One process, whoever its children are.
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        self.trees(&[pid]).pop()??.processes.into_iter().find(|process| process.pid == pid)
    }

    /// Those of these that live, in the same order.
    fn living(&self, pids: &[u32]) -> Vec<ProcessInfo> {
        pids.iter().filter_map(|pid| self.process(*pid)).collect()
    }

    fn cwd(&self, pid: u32) -> Option<PathBuf>;

    /// What this process reads from: a terminal, a file, or a name that is no path; `None` where the system does not tell.
    fn stdin_path(&self, _pid: u32) -> Option<PathBuf> {
        None
    }

    /// One variable of the environment that this process was started with; `None` where the system does not tell.
    fn environment_variable(&self, pid: u32, name: &str) -> Option<OsString>;

    /// The paths of the files that this process has open; none where the system does not tell.
    fn open_files(&self, _pid: u32) -> Vec<PathBuf> {
        Vec::new()
    }

    /// When this process was started, by the wall clock; `None` where the system does not tell.
    fn started_at(&self, _pid: u32) -> Option<SystemTime> {
        None
    }

    /// A number that differs from the last one whenever any thread of this process has run in between; `None` where
    /// the system does not tell.
    fn wakeups(&self, pid: u32) -> Option<u64>;

    /// Stopped by a signal (SIGSTOP, SIGTSTP) or by a tracer.
    fn is_stopped(&self, pid: u32) -> bool;
}
