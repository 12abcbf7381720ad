//! Reads process information from /proc.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// The pids of all visible processes.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is readable");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether the process is alive. A zombie counts as dead.
pub fn is_alive(pid: u32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

pub fn is_stopped(pid: u32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| stat.state == 'T')
}

/// What the open file descriptors refer to, sorted by path. Empty if the process has ended.
pub fn open_fds(pid: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let mut targets: Vec<PathBuf> = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect();
    targets.sort();
    targets
}

pub fn parent(pid: u32) -> Option<u32> {
    ProcStat::read(pid).map(|stat| stat.parent)
}

/// Whether the process belongs to the foreground process group of its terminal.
pub fn is_in_foreground(pid: u32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| stat.group == stat.foreground_group)
}

/// The living children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let child_of = |candidate: &u32| ProcStat::read(*candidate).is_some_and(|s| s.parent == pid && s.state != 'Z');
    all().into_iter().filter(child_of).collect()
}

/// The living descendants of a process.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
    for candidate in all() {
        if let Some(stat) = ProcStat::read(candidate).filter(|stat| stat.state != 'Z') {
            by_parent.entry(stat.parent).or_default().push(candidate);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(next) = open.pop() {
        let below = by_parent.remove(&next).unwrap_or_default();
        open.extend(&below);
        found.extend(below);
    }
    found
}

/// The CPU time used by the process itself, without its children.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    ProcStat::read(pid).map(|stat| ticks(stat.own_ticks))
}

/// The CPU time used by the process and by its reaped children.
pub fn cpu_time_with_children(pid: u32) -> Option<Duration> {
    ProcStat::read(pid).map(|stat| ticks(stat.own_ticks + stat.children_ticks))
}

/// The resident memory of a process, in bytes.
pub fn resident_memory(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// The number of processes and threads that have been started on this machine since boot. To count those that a test
/// starts, compare two readings while nothing else runs.
pub fn started_since_boot() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("/proc/stat is readable");
    let line = stat.lines().find_map(|line| line.strip_prefix("processes ")).expect("/proc/stat counts processes");
    line.trim().parse().expect("a number")
}

/// The pid and the command line of a process, for test messages.
pub fn describe(pid: u32) -> String {
    let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = argv.split(|b| *b == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
    format!("{pid} ({})", words.join(" "))
}

/// The arguments of a process as bytes.
pub fn argv(pid: u32) -> Vec<Vec<u8>> {
    let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = argv.strip_suffix(b"\0").unwrap_or(&argv);
    text.split(|b| *b == 0).map(<[u8]>::to_vec).collect()
}

/// Whether the process was started with this environment variable and value.
pub fn has_variable(pid: u32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|b| *b == 0).any(|variable| variable == wanted.as_bytes())
}

/// Sends a signal. Returns false if the signal could not be sent.
pub fn signal(pid: u32, signal: Signal) -> bool {
    to_pid(pid).is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
}

pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 1000 / rustix::param::clock_ticks_per_second())
}

/// The resources that a process uses. A comparison of two footprints reveals a leak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    pub fds: Vec<PathBuf>,
    pub children: Vec<u32>,
    pub resident_memory: u64,
}

impl Footprint {
    /// None if the process has ended.
    pub fn of(pid: u32) -> Option<Self> {
        let resident_memory = resident_memory(pid)?;
        Some(Self { fds: open_fds(pid), children: children(pid), resident_memory })
    }

    /// Fails the test if `later` has more descriptors or more children than `self`.
    #[track_caller]
    pub fn assert_no_leak(&self, later: &Self) {
        let children: Vec<String> = later.children.iter().map(|pid| describe(*pid)).collect();
        let fds_grew = later.fds.len() > self.fds.len();
        assert!(!fds_grew, "descriptors leaked\nbefore: {:#?}\nafter: {:#?}", self.fds, later.fds);
        assert!(later.children.len() <= self.children.len(), "children leaked: {children:#?}");
    }
}

struct ProcStat {
    state: char,
    parent: u32,
    group: i32,
    /// The foreground process group of the terminal, or -1 without a terminal.
    foreground_group: i32,
    own_ticks: u64,
    children_ticks: u64,
}

impl ProcStat {
    fn read(pid: u32) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain any characters, including parentheses and spaces.
        let after_name = bytes.iter().rposition(|b| *b == b')')? + 1;
        let text = String::from_utf8_lossy(&bytes[after_name..]);
        let fields: Vec<&str> = text.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            foreground_group: fields.get(5)?.parse().ok()?,
            own_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BusyCores, ChildGuard, wait_until};
    use std::fs::File;
    use std::process::{Command, id};

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn a_process_sees_itself() {
        assert!(all().contains(&id()) && is_alive(id()) && !is_stopped(id()));
        assert!(resident_memory(id()).is_some_and(|bytes| bytes > 100_000));
        assert_eq!(argv(id()).first().map(Vec::as_slice), std::env::args().next().as_deref().map(str::as_bytes));
    }

    #[test]
    fn open_files_are_listed() {
        let file = tempfile::NamedTempFile::new().expect("temporary");
        let other = File::open(file.path()).expect("opens");
        assert_eq!(open_fds(id()).iter().filter(|path| *path == file.path()).count(), 2);
        drop(other);
        assert_eq!(open_fds(id()).iter().filter(|path| *path == file.path()).count(), 1);
    }

    #[test]
    fn children_and_descendants_are_listed() {
        let before = started_since_boot();
        let child = ChildGuard::start(Command::new("sh").args(["-c", "sleep 1000 & wait"]));
        wait_until("the grandchild", SOON, || children(child.id()).len() == 1);
        assert!(descendants(id()).contains(&children(child.id())[0]));
        assert!(children(id()).contains(&child.id()));
        assert!(started_since_boot() >= before + 2);
        let (pid, grandchild) = (child.id(), children(child.id())[0]);
        assert!(signal(grandchild, Signal::TERM));
        drop(child);
        assert!(!is_alive(pid));
        wait_until("the grandchild's end", SOON, || !is_alive(grandchild));
    }

    #[test]
    fn a_stopped_process_is_recognized() {
        let child = ChildGuard::start(Command::new("sleep").arg("1000"));
        assert!(signal(child.id(), Signal::STOP));
        wait_until("the stop", SOON, || is_stopped(child.id()));
    }

    #[test]
    fn a_leak_fails_the_test_and_is_named() {
        let small = Footprint { fds: vec!["/a".into()], children: vec![], resident_memory: 1 };
        let grown = Footprint { fds: vec!["/a".into(), "/leaked".into()], ..small.clone() };
        grown.assert_no_leak(&small);
        let error = std::panic::catch_unwind(|| small.assert_no_leak(&grown)).expect_err("grew");
        assert!(error.downcast_ref::<String>().is_some_and(|message| message.contains("/leaked")));
        assert!(Footprint::of(id()).is_some_and(|own| !own.fds.is_empty()));
        assert_eq!(Footprint::of(u32::MAX), None);
    }

    #[test]
    fn cpu_time_grows_on_a_busy_core() {
        let before = cpu_time_with_children(id()).expect("alive");
        let busy = BusyCores::start(1);
        wait_until("50 ms of work", SOON, || {
            cpu_time(id()).is_some_and(|now| now >= before + Duration::from_millis(50))
        });
        drop(busy);
    }
}
