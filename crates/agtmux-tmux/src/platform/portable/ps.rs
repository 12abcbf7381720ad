use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::rows::{Row, parse_args, parse_row};
use crate::platform::process::{MAX_TREE, PaneProcesses, Process, ProcessTable};

const COLUMNS: &str = "pid=,ppid=,pgid=,tpgid=,stat=,lstart=,comm=";
const ARGS_COLUMNS: &str = "pid=,lstart=,args=";

/// How long one listing answers the cheap questions.
const FRESH: Duration = Duration::from_millis(500);

type Rows = HashMap<u32, Row>;
type Args = HashMap<(u32, u64), Vec<Vec<u8>>>;

/// The process table as `ps` prints it.
#[derive(Default)]
pub(in crate::platform) struct Ps {
    last: Mutex<Option<(Instant, Arc<Rows>)>>,
}

impl Ps {
    fn refresh(&self) -> io::Result<Arc<Rows>> {
        let begun = Instant::now();
        let rows = Arc::new(rows()?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((begun, rows.clone()));
        Ok(rows)
    }

    fn row(&self, pid: u32) -> Option<Row> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, rows)) = last.filter(|(begun, _)| begun.elapsed() < FRESH)
            && let Some(row) = rows.get(&pid)
        {
            return Some(row.clone());
        }
        self.refresh().inspect_err(warn).ok()?.get(&pid).cloned()
    }
}

impl ProcessTable for Ps {
    fn foreground_pgrp(&self, pid: u32) -> Option<u32> {
        self.row(pid)?.tpgid
    }

    fn start_time(&self, pid: u32) -> Option<u64> {
        Some(self.row(pid)?.start)
    }

    fn trees(&self, roots: &[u32]) -> Vec<Option<PaneProcesses>> {
        let listed = self.refresh().and_then(|rows| Ok((rows, args()?)));
        let Ok((rows, args)) = listed.inspect_err(warn) else { return vec![None; roots.len()] };
        let children = children(&rows);
        roots.iter().map(|&root| tree(root, &rows, &children, &args)).collect()
    }

    fn cwd(&self, _pid: u32) -> Option<PathBuf> {
        None
    }

    fn variable(&self, _pid: u32, _name: &str) -> Option<OsString> {
        None
    }

    fn wakeups(&self, _pid: u32) -> Option<u64> {
        None
    }

    fn is_stopped(&self, pid: u32) -> bool {
        self.row(pid).is_some_and(|row| row.stopped)
    }
}

fn children(rows: &Rows) -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in rows.values() {
        children.entry(row.ppid).or_default().push(row.pid);
    }
    for pids in children.values_mut() {
        pids.sort_unstable();
    }
    children
}

fn tree(root: u32, rows: &Rows, children: &HashMap<u32, Vec<u32>>, args: &Args) -> Option<PaneProcesses> {
    let foreground_pgrp = rows.get(&root)?.tpgid;
    let mut seen = HashSet::from([root]);
    let mut waiting = VecDeque::from([root]);
    let mut processes = Vec::new();
    while processes.len() < MAX_TREE
        && let Some(pid) = waiting.pop_front()
    {
        waiting.extend(children.get(&pid).into_iter().flatten().filter(|&&child| seen.insert(child)));
        processes.extend(rows.get(&pid).map(|row| process(row, args)));
    }
    Some(PaneProcesses { foreground_pgrp, processes })
}

fn process(row: &Row, args: &Args) -> Process {
    // macOS prints the whole path of the executable as `comm`.
    let path = Path::new(OsStr::from_bytes(&row.comm));
    let name = path.file_name().filter(|_| path.is_absolute()).map_or(&row.comm[..], OsStr::as_bytes);
    let argv = args.get(&(row.pid, row.start)).filter(|_| !row.zombie).cloned().unwrap_or_default();
    Process {
        pid: row.pid,
        ppid: row.ppid,
        pgrp: row.pgrp,
        tpgid: row.tpgid,
        start: row.start,
        stopped: row.stopped,
        zombie: row.zombie,
        name: name.to_vec(),
        argv,
        exe: path.is_absolute().then(|| path.to_path_buf()),
    }
}

/// All processes.
pub(super) fn rows() -> io::Result<Rows> {
    let printed = ps(&["-ax"], COLUMNS)?;
    Ok(lines(&printed).filter_map(parse_row).map(|row| (row.pid, row)).collect())
}

/// One process; `None` when it is gone.
pub(super) fn row(pid: u32) -> io::Result<Option<Row>> {
    let printed = ps(&["-p", &pid.to_string()], COLUMNS)?;
    Ok(lines(&printed).filter_map(parse_row).find(|row| row.pid == pid))
}

fn args() -> io::Result<Args> {
    let printed = ps(&["-axww"], ARGS_COLUMNS)?;
    Ok(lines(&printed).filter_map(parse_args).map(|(pid, start, args)| ((pid, start), args)).collect())
}

/// `ps` fails when no process matches, so its exit code says nothing.
fn ps(which: &[&str], columns: &str) -> io::Result<Vec<u8>> {
    let mut command = Command::new("ps");
    command.args(which).args(["-o", columns]).env("LC_ALL", "C").env("TZ", "UTC0").env_remove("COLUMNS");
    Ok(command.stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout)
}

fn lines(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|&byte| byte == b'\n')
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "ps failed");
}
