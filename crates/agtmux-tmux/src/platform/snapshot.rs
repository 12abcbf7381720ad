//! A snapshot of the process table of this machine or of another host. It is parsed from the output of `ps` or from
//! `/proc`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::process::{MAX_TREE, PaneProcesses, ProcessInfo};
use super::ps_rows::{lines, parse_args, parse_commands, parse_row, split_arguments};
use super::stat;

#[derive(Debug, Default)]
pub struct ProcessSnapshot {
    rows: HashMap<u32, ProcessInfo>,
    children: HashMap<u32, Vec<u32>>,
    /// The arguments of each process, by pid. If the listing of the arguments contains start times, the start time is
    /// stored too.
    args: HashMap<u32, (Option<u64>, Vec<Vec<u8>>)>,
}

impl ProcessSnapshot {
    pub(super) fn from_rows(rows: impl Iterator<Item = ProcessInfo>, args: &[u8]) -> Self {
        let args = lines(args).filter_map(parse_args).map(|(pid, start, args)| (pid, (Some(start), args)));
        Self::new(rows, args.collect())
    }

    /// Builds a snapshot from two outputs of `ps`. The first lists the processes, and the second lists their arguments.
    pub(crate) fn from_ps(rows: &[u8], args: &[u8]) -> Self {
        Self::from_rows(lines(rows).filter_map(parse_row), args)
    }

    /// Builds a snapshot from the lines of all `/proc/N/stat` files and from the arguments that `ps` prints. Each line
    /// begins with the path of its file.
    pub(crate) fn from_proc(stats: &[u8], args: &[u8]) -> Self {
        let rows: HashMap<u32, ProcessInfo> =
            lines(stats).filter_map(parse_stat_line).map(|row| (row.pid, row)).collect();
        let args = parse_commands(args).into_iter().map(|(pid, args)| {
            let named = rows.get(&pid).map_or(&args[..], |row| without_name(&args, &row.name));
            (pid, (None, split_arguments(named)))
        });
        let args = args.collect();
        Self::new(rows.into_values(), args)
    }

    fn new(rows: impl Iterator<Item = ProcessInfo>, args: HashMap<u32, (Option<u64>, Vec<Vec<u8>>)>) -> Self {
        let rows: HashMap<u32, ProcessInfo> = rows.map(|row| (row.pid, row)).collect();
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for row in rows.values() {
            children.entry(row.ppid).or_default().push(row.pid);
        }
        children.values_mut().for_each(|pids| pids.sort_unstable());
        Self { rows, children, args }
    }

    /// Whether the listing contains no process. A valid listing contains at least the process that printed it. An empty
    /// listing therefore does not prove that any process is gone.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The process `root` and its descendants. `None` if `root` is gone.
    pub fn tree(&self, root: u32) -> Option<PaneProcesses> {
        let foreground_pgrp = self.rows.get(&root)?.tpgid;
        let mut seen = HashSet::from([root]);
        let mut waiting = VecDeque::from([root]);
        let mut processes = Vec::new();
        while processes.len() < MAX_TREE
            && let Some(pid) = waiting.pop_front()
        {
            waiting.extend(self.children.get(&pid).into_iter().flatten().filter(|&&child| seen.insert(child)));
            processes.extend(self.process(pid));
        }
        Some(PaneProcesses { foreground_pgrp, processes })
    }

    pub fn process(&self, pid: u32) -> Option<ProcessInfo> {
        let row = self.rows.get(&pid)?;
        // macOS prints the full path of the executable as `comm`.
        let path = Path::new(OsStr::from_bytes(&row.name));
        let name = path.file_name().filter(|_| path.is_absolute()).map_or(&row.name[..], OsStr::as_bytes);
        let starts_match = |start: &Option<u64>| !row.zombie && start.is_none_or(|start| start == row.start);
        let argv = self.args.get(&pid).filter(|(start, _)| starts_match(start)).map(|(_, args)| args.clone());
        let exe = path.is_absolute().then(|| path.to_path_buf());
        Some(ProcessInfo { name: name.to_vec(), argv: argv.unwrap_or_default(), exe, ..row.clone() })
    }
}

/// Removes a leading `{name}` from the arguments. busybox prints it if the arguments do not start with the name of the
/// process.
fn without_name<'a>(args: &'a [u8], name: &[u8]) -> &'a [u8] {
    let after_name = args.strip_prefix(b"{").and_then(|rest| rest.strip_prefix(name)?.strip_prefix(b"}"));
    after_name.map_or(args, <[u8]>::trim_ascii_start)
}

/// Parses a line such as `/proc/N/stat:N (name) …`. If a process name contains a newline, the rest of the name is on a
/// second line, which also begins with the path `/proc/N/stat`. A line is valid only if its pid matches its path, so a
/// process cannot forge the row of another process.
fn parse_stat_line(line: &[u8]) -> Option<ProcessInfo> {
    let line = line.strip_prefix(b"/proc/")?;
    let file = line.iter().position(|&byte| byte == b'/')?;
    let stat = stat::parse(line[file..].strip_prefix(b"/stat:")?)?;
    let is_own = stat::number::<u32>(&line[..file]) == Some(stat.pid);
    is_own.then_some(stat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATS: &str = "/proc/10/stat:10 (bash) S 1 10 10 34816 20 0 1 2 3 4 5 6 7 8 20 0 1 0 100 1 1\n\
        /proc/20/stat:20 (node) T 10 20 10 34816 20 0 1 2 3 4 5 6 7 8 20 0 1 0 200 1 1\n\
        /proc/30/stat:30 (evil\n/proc/30/stat:20 (claude) S 10 20 10 34816 20 0 1 2 3 4 5 6 7 8 20 0 1 0 999 1 1\n";

    #[test]
    fn a_tree_is_read_from_proc_and_ps() {
        let snapshot =
            ProcessSnapshot::from_proc(STATS.as_bytes(), b"PID COMMAND\n   10 -bash\n   20 {node} /opt/claude {x} y\n");
        let tree = snapshot.tree(10).expect("it exists");
        assert_eq!(tree.foreground_pgrp, Some(20));
        let seen: Vec<_> = tree.processes.iter().map(|p| (p.pid, p.start, p.stopped, p.argv.len())).collect();
        assert_eq!(seen, [(10, 100, false, 1), (20, 200, true, 3)], "a name cannot forge a row");
        assert_eq!(snapshot.tree(30), None);
    }

    #[test]
    fn a_tree_is_read_from_macos_output() {
        let rows = b"  501   1  501   600 Ss   Mon Jul 14 09:10:25 2025 -zsh\n\
              600 501  600   600 S+   Mon Jul 14 09:11:00 2025 /opt/homebrew/bin/node\n";
        let args = b"  501 Mon Jul 14 09:10:25 2025 -zsh\n  600 Mon Jul 14 09:11:01 2025 stranger\n";
        let tree = ProcessSnapshot::from_ps(rows, args).tree(501).expect("it exists");
        let node = &tree.processes[1];
        assert_eq!(
            (node.name.as_slice(), node.exe.as_deref()),
            (&b"node"[..], Some(Path::new("/opt/homebrew/bin/node")))
        );
        assert_eq!(node.argv, Vec::<Vec<u8>>::new(), "the arguments belong to an earlier process with this pid");
    }

    proptest! {
        #[test]
        fn any_bytes_are_tolerated(rows in proptest::collection::vec(any::<u8>(), 0..200),
                                   args in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (ProcessSnapshot::from_ps(&rows, &args).tree(1), ProcessSnapshot::from_proc(&rows, &args).tree(1));
        }
    }
}
