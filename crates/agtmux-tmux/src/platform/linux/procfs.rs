use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use memchr::memmem::find;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use super::{pts, stat};
use crate::platform::process::{MAX_TREE, PaneProcesses, ProcessInfo, ProcessTable};
use crate::platform::resources::none_unless_exhausted;

const MAX_ARGV_BYTES: u64 = 64 * 1024;
const MAX_ENVIRONMENT_BYTES: u64 = 1024 * 1024;
const MAX_CHILDREN_BYTES: u64 = 64 * 1024;
const MAX_STATUS_BYTES: u64 = 16 * 1024;
const FIRST_READ_BYTES: usize = 4096;
const MAX_THREADS: usize = 4096;
const MAX_FILES: usize = 4096;

pub(in crate::platform) struct ProcFs {
    /// Whether `/proc` has files that list the children of each thread (CONFIG_PROC_CHILDREN).
    lists_children: bool,
}

impl ProcFs {
    pub(in crate::platform) fn works() -> bool {
        stat::read(std::process::id()).is_some()
    }

    pub(in crate::platform) fn new() -> Self {
        Self { lists_children: Path::new("/proc/thread-self/children").exists() }
    }

    #[cfg(test)]
    pub(in crate::platform) fn without_children_lists() -> Self {
        Self { lists_children: false }
    }
}

impl ProcessTable for ProcFs {
    fn foreground_pgrp(&self, pid: u32) -> Option<u32> {
        stat::read(pid)?.tpgid
    }

    fn start_time(&self, pid: u32) -> Option<u64> {
        Some(stat::read(pid)?.start)
    }

    fn trees(&self, roots: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>> {
        let lookup = if self.lists_children { ChildLookup::PerProcess } else { ChildLookup::scan()? };
        roots.iter().map(|&root| tree(root, &lookup)).collect()
    }

    fn try_process(&self, pid: u32) -> io::Result<Option<ProcessInfo>> {
        stat::try_read(pid)?.map(complete).transpose()
    }

    fn reports_details(&self) -> bool {
        true
    }

    fn cwd(&self, pid: u32) -> Option<PathBuf> {
        link(pid, "cwd")
    }

    fn stdin_path(&self, pid: u32) -> Option<PathBuf> {
        link(pid, "fd/0")
    }

    fn has_keyboard_of(&self, pid: u32, holder: u32) -> bool {
        let Some(number) = pts::controlling(pid) else { return false };
        self.stdin_path(pid) == Some(PathBuf::from(format!("/dev/pts/{number}"))) && pts::holds(holder, number)
    }

    fn runs_this_program(&self, pid: u32) -> bool {
        let file = |process: &str| fs::metadata(format!("/proc/{process}/exe")).map(|meta| (meta.dev(), meta.ino()));
        matches!((file("self"), file(&pid.to_string())), (Ok(own), Ok(other)) if own == other)
    }

    fn environment_variable(&self, pid: u32, name: &str) -> Option<OsString> {
        let environment = read_limited(&format!("/proc/{pid}/environ"), MAX_ENVIRONMENT_BYTES).ok()??;
        let prefix = format!("{name}=");
        let found = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(prefix.as_bytes()));
        found.map(|value| OsString::from_vec(value.to_vec()))
    }

    fn is_inspectable(&self, pid: u32) -> bool {
        let is_denied = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
        let environment = File::open(format!("/proc/{pid}/environ")).map(drop);
        !environment.is_err_and(is_denied) && !fs::read_link(format!("/proc/{pid}/exe")).is_err_and(is_denied)
    }

    fn uid(&self, pid: u32) -> Option<u32> {
        let status = read_limited(&format!("/proc/{pid}/status"), MAX_STATUS_BYTES).ok()??;
        let ids = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
        // The line contains the real, effective, saved and file system ids. Take the effective one.
        stat::number(ids.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty()).nth(1)?)
    }

    fn control_group(&self, pid: u32) -> Option<String> {
        let groups = read_limited(&format!("/proc/{pid}/cgroup"), MAX_STATUS_BYTES).ok()??;
        // Control groups of version 2 have one line, `0::PATH`. With version 1, systemd has a hierarchy of its own.
        let lines = || groups.split(|&byte| byte == b'\n');
        let of_systemd = lines().find_map(|line| Some(line.split_at(find(line, b":name=systemd:")?).1));
        let path = match of_systemd {
            Some(line) => &line[b":name=systemd:".len()..],
            None => lines().find_map(|line| line.strip_prefix(b"0::"))?,
        };
        Some(String::from_utf8_lossy(path).into_owned())
    }

    fn open_files(&self, pid: u32) -> Vec<PathBuf> {
        let Ok(numbers) = numbered_entries(&format!("/proc/{pid}/fd")) else { return Vec::new() };
        // Links of sockets and pipes are not paths.
        let paths = numbers.take(MAX_FILES).filter_map(|fd| fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok());
        paths.filter(|path| path.is_absolute()).collect()
    }

    fn started_at(&self, pid: u32) -> Option<SystemTime> {
        let ticks = Duration::from_secs(stat::read(pid)?.start) / u32::try_from(clock_ticks_per_second()).ok()?;
        let since_boot = clock_gettime(ClockId::Boottime);
        let since_boot = Duration::try_from(since_boot).ok()?;
        SystemTime::now().checked_sub(since_boot.checked_sub(ticks)?)
    }

    fn wakeups(&self, pid: u32) -> Option<u64> {
        let switches = threads(pid).ok()?.map(|thread| context_switches(&format!("/proc/{pid}/task/{thread}/status")));
        switches.flatten().reduce(u64::wrapping_add)
    }

    fn is_stopped(&self, pid: u32) -> bool {
        stat::read(pid).is_some_and(|process| process.stopped)
    }
}

/// How to find the children of a process.
enum ChildLookup {
    /// Read the `children` files of the process.
    PerProcess,
    /// Look up the process in a map of parents and children, which was built by reading all processes once.
    Scanned(HashMap<u32, Vec<u32>>),
}

impl ChildLookup {
    fn scan() -> io::Result<Self> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in numbered_entries("/proc")? {
            if let Some(stat) = stat::try_read(pid)? {
                children.entry(stat.ppid).or_default().push(stat.pid);
            }
        }
        Ok(Self::Scanned(children))
    }

    fn children(&self, pid: u32) -> io::Result<Vec<u32>> {
        match self {
            Self::PerProcess => {
                let mut children = Vec::new();
                for thread in threads(pid)? {
                    children.extend(children_of_thread(pid, thread)?);
                }
                Ok(children)
            }
            Self::Scanned(children) => Ok(children.get(&pid).cloned().unwrap_or_default()),
        }
    }
}

fn tree(root: u32, lookup: &ChildLookup) -> io::Result<Option<PaneProcesses>> {
    let Some(first) = stat::try_read(root)? else { return Ok(None) };
    let foreground_pgrp = first.tpgid;
    let mut seen = HashSet::from([root]);
    let mut waiting = VecDeque::from([first]);
    let mut processes = Vec::new();
    while let Some(parent) = waiting.pop_front() {
        for child in lookup.children(parent.pid)? {
            let room = processes.len() + waiting.len() + 1 < MAX_TREE;
            // The pid may have been reused since it was listed; then the parent differs.
            let is_child = |stat: &ProcessInfo| stat.ppid == parent.pid;
            if room
                && let Some(stat) = stat::try_read(child)?.filter(is_child)
                && seen.insert(child)
            {
                waiting.push_back(stat);
            }
        }
        processes.push(complete(parent)?);
    }
    Ok(Some(PaneProcesses { foreground_pgrp, processes }))
}

/// Adds the arguments and the executable to a process that was read from its stat file. The stat file does not contain
/// them.
fn complete(process: ProcessInfo) -> io::Result<ProcessInfo> {
    Ok(ProcessInfo { argv: argv(process.pid)?, exe: link(process.pid, "exe"), ..process })
}

fn argv(pid: u32) -> io::Result<Vec<Vec<u8>>> {
    let joined = read_limited(&format!("/proc/{pid}/cmdline"), MAX_ARGV_BYTES)?.unwrap_or_default();
    Ok(split_argv(&joined))
}

/// Splits the arguments. Each argument ends with NUL. Further NULs at the end are ignored: they remain if a program
/// overwrites its title.
fn split_argv(joined: &[u8]) -> Vec<Vec<u8>> {
    let Some(last) = joined.iter().rposition(|&byte| byte != 0) else { return Vec::new() };
    joined[..=last].split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// The path that a link in `/proc/<pid>` points to. `None` if agtmux may not read the link.
fn link(pid: u32, name: &str) -> Option<PathBuf> {
    let target = fs::read_link(format!("/proc/{pid}/{name}")).ok()?;
    Some(match target.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) => PathBuf::from(OsString::from_vec(path.to_vec())),
        None => target,
    })
}

fn threads(pid: u32) -> io::Result<impl Iterator<Item = u32>> {
    Ok(numbered_entries(&format!("/proc/{pid}/task"))?.take(MAX_THREADS))
}

fn children_of_thread(pid: u32, thread: u32) -> io::Result<Vec<u32>> {
    let list = read_limited(&format!("/proc/{pid}/task/{thread}/children"), MAX_CHILDREN_BYTES)?.unwrap_or_default();
    Ok(list.split(u8::is_ascii_whitespace).filter_map(stat::number).collect())
}

/// The entries of a directory in `/proc` whose names are numbers. Empty if the process of the directory is gone.
pub(super) fn numbered_entries(dir: &str) -> io::Result<impl Iterator<Item = u32> + use<>> {
    let entries = none_unless_exhausted(fs::read_dir(dir))?.into_iter().flatten();
    Ok(entries.filter_map(|entry| stat::number(entry.ok()?.file_name().as_bytes())))
}

fn context_switches(status: &str) -> Option<u64> {
    let status = read_limited(status, MAX_STATUS_BYTES).ok()??;
    let counts = status.split(|&byte| byte == b'\n').filter_map(|line| {
        let count = line
            .strip_prefix(b"voluntary_ctxt_switches:")
            .or_else(|| line.strip_prefix(b"nonvoluntary_ctxt_switches:"))?;
        stat::number::<u64>(count.trim_ascii())
    });
    counts.reduce(u64::wrapping_add)
}

/// Reads at most `limit` bytes of a file. `None` if the file is gone or agtmux may not read it. Fails if agtmux lacks
/// file descriptors or memory to read it.
pub(super) fn read_limited(path: &str, limit: u64) -> io::Result<Option<Vec<u8>>> {
    // Most of these files fit into one read. An empty buffer would grow in many small reads.
    let mut bytes = Vec::with_capacity(FIRST_READ_BYTES);
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    Ok(none_unless_exhausted(read)?.map(|_| bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_control_group_of_this_process_are_read() {
        let (table, pid) = (ProcFs::new(), std::process::id());
        assert_eq!(table.uid(pid), Some(rustix::process::geteuid().as_raw()));
        assert!(table.control_group(pid).is_none_or(|group| group.starts_with('/')));
        assert!(table.is_inspectable(pid), "a process can inspect itself");
        assert_eq!((table.uid(u32::MAX), table.control_group(u32::MAX)), (None, None));
    }

    #[test]
    fn empty_arguments_are_kept_and_padding_is_not() {
        assert_eq!(split_argv(b"a\0\0b c\0"), [b"a".to_vec(), b"".to_vec(), b"b c".to_vec()]);
        assert_eq!(split_argv(b"title\0\0\0\0"), [b"title".to_vec()]);
        assert_eq!(split_argv(b"\0\0"), Vec::<Vec<u8>>::new());
        assert_eq!(split_argv(b""), Vec::<Vec<u8>>::new());
    }
}
