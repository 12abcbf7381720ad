use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

/// The maximum number of processes per pane. If a pane has more, only the ones closest to the pane's first process
/// are kept.
pub const MAX_TREE: usize = 512;

/// One process as the kernel reports it. Texts come from the process and can be any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    pub ppid: u32,
    pub pgrp: u32,
    /// The foreground process group of the terminal that this process uses. This terminal can differ from the pane's
    /// terminal, for example under sudo or script.
    pub tpgid: Option<u32>,
    /// When the process started, in a unit that depends on the platform. Until the next reboot, the pid and the start
    /// time together identify the process.
    pub start: u64,
    /// Whether the process was stopped by a signal or by a tracer.
    pub stopped: bool,
    /// Whether the process has ended but its parent has not waited for it yet.
    pub zombie: bool,
    /// The short name (`comm`), cut to 15 bytes on Linux.
    pub name: Vec<u8>,
    /// The arguments. Empty for a zombie. The portable process table splits the output of `ps` at blanks, so an
    /// argument that contains blanks becomes several arguments.
    pub argv: Vec<Vec<u8>>,
    pub exe: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneProcesses {
    /// The process group that owns the pane's terminal.
    pub foreground_pgrp: Option<u32>,
    /// The pane's first process and its descendants. Parents come before their children, and there are at most
    /// [`MAX_TREE`].
    pub processes: Vec<ProcessInfo>,
}

/// Reads the process table. All methods block the thread: on Linux for microseconds, on other systems until `ps` ends.
pub trait ProcessTable: Send + Sync {
    /// The foreground process group of the terminal that process `pid` uses. `None` if the process is gone or has no
    /// terminal. On Linux this reads only one file.
    fn foreground_pgrp(&self, pid: u32) -> Option<u32>;

    fn start_time(&self, pid: u32) -> Option<u64>;

    /// One process tree per root, in the order of `roots`. The tree is `None` if the root is gone. Fails if the process
    /// table cannot be read, for example because agtmux has no free file descriptor. Then the processes may still
    /// exist.
    fn trees(&self, roots: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>>;

    /// One process without its children. `None` if the process is gone. Fails if the process table cannot be read.
    fn try_process(&self, pid: u32) -> io::Result<Option<ProcessInfo>> {
        let tree = self.trees(&[pid])?.pop().flatten();
        Ok(tree.and_then(|tree| tree.processes.into_iter().find(|process| process.pid == pid)))
    }

    /// One process without its children. `None` if the process is gone or the process table cannot be read.
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        self.try_process(pid).ok().flatten()
    }

    /// Those processes in `pids` that still exist, in the same order.
    fn living(&self, pids: &[u32]) -> Vec<ProcessInfo> {
        pids.iter().filter_map(|pid| self.process(*pid)).collect()
    }

    /// The working directory; `None` if the system does not report it.
    fn cwd(&self, _pid: u32) -> Option<PathBuf> {
        None
    }

    /// The file, terminal or pipe that stdin refers to; `None` if the system does not report it.
    fn stdin_path(&self, _pid: u32) -> Option<PathBuf> {
        None
    }

    /// Whether the process reads its keys from a terminal to which `holder` writes them: the controlling terminal of the
    /// process is its stdin, and `holder` has the other end open. False if the system does not report it.
    fn has_keyboard_of(&self, _pid: u32, _holder: u32) -> bool {
        false
    }

    /// Whether the process runs the same program file as this process. False if the system does not report it.
    fn runs_this_program(&self, _pid: u32) -> bool {
        false
    }

    /// A variable of the initial environment of this process; `None` if the system does not report it.
    fn environment_variable(&self, _pid: u32, _name: &str) -> Option<OsString> {
        None
    }

    /// Whether the system shows agtmux the environment and the executable of this process. A process can forbid that.
    /// The system also hides them if the process has changed its user, as sshd does.
    fn is_inspectable(&self, _pid: u32) -> bool {
        true
    }

    /// Whether this system reports the users, environments, control groups and start times of processes.
    fn reports_details(&self) -> bool {
        false
    }

    /// The user that this process runs as; `None` if the system does not report it.
    fn uid(&self, _pid: u32) -> Option<u32> {
        None
    }

    /// The control group of this process, such as `/user.slice/…/app.service`; `None` if the system has none.
    fn control_group(&self, _pid: u32) -> Option<String> {
        None
    }

    /// The paths of the open files of this process; empty if the system does not report them.
    fn open_files(&self, _pid: u32) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The time at which this process started, by the wall clock; `None` if the system does not report it.
    fn started_at(&self, _pid: u32) -> Option<SystemTime> {
        None
    }

    /// A number that changes whenever a thread of this process runs. `None` if the system does not report it.
    fn wakeups(&self, _pid: u32) -> Option<u64> {
        None
    }

    /// Whether the process was stopped by a signal (SIGSTOP, SIGTSTP) or by a tracer.
    fn is_stopped(&self, pid: u32) -> bool;
}
