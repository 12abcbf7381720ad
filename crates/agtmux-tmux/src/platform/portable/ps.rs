use std::collections::HashMap;
use std::io;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ps_rows::{ARGS_COLUMNS, COLUMNS, lines, parse_row};
use crate::platform::process::{PaneProcesses, ProcessInfo, ProcessTable};
use crate::platform::snapshot::ProcessSnapshot;

/// A lookup of a single process uses the last full listing if that listing is younger than this.
const CACHE_TTL: Duration = Duration::from_millis(500);

type PsRows = HashMap<u32, ProcessInfo>;

/// The process table, read by running `ps`.
#[derive(Default)]
pub(in crate::platform) struct PsTable {
    last: Mutex<Option<(Instant, Arc<PsRows>)>>,
}

impl PsTable {
    fn refresh(&self) -> io::Result<Arc<PsRows>> {
        let begun = Instant::now();
        let rows = Arc::new(rows()?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((begun, rows.clone()));
        Ok(rows)
    }

    fn snapshot(&self) -> io::Result<ProcessSnapshot> {
        let rows = self.refresh()?;
        Ok(ProcessSnapshot::from_rows(rows.values().cloned(), &ps(&["-axww"], ARGS_COLUMNS)?))
    }

    fn row(&self, pid: u32) -> Option<ProcessInfo> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, rows)) = last.filter(|(begun, _)| begun.elapsed() < CACHE_TTL)
            && let Some(row) = rows.get(&pid)
        {
            return Some(row.clone());
        }
        self.refresh().inspect_err(warn).ok()?.get(&pid).cloned()
    }
}

impl ProcessTable for PsTable {
    fn foreground_pgrp(&self, pid: u32) -> Option<u32> {
        self.row(pid)?.tpgid
    }

    fn start_time(&self, pid: u32) -> Option<u64> {
        Some(self.row(pid)?.start)
    }

    fn trees(&self, roots: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>> {
        let snapshot = self.snapshot().inspect_err(warn)?;
        // A complete list contains at least `ps` itself.
        if snapshot.is_empty() {
            return Err(io::Error::other("ps printed nothing"));
        }
        Ok(roots.iter().map(|&root| snapshot.tree(root)).collect())
    }

    fn living(&self, pids: &[u32]) -> Vec<ProcessInfo> {
        let Ok(snapshot) = self.snapshot().inspect_err(warn) else { return Vec::new() };
        pids.iter().filter_map(|&pid| snapshot.process(pid)).collect()
    }

    fn is_stopped(&self, pid: u32) -> bool {
        self.row(pid).is_some_and(|row| row.stopped)
    }
}

/// Lists all processes.
pub(super) fn rows() -> io::Result<PsRows> {
    let printed = ps(&["-ax"], COLUMNS)?;
    Ok(lines(&printed).filter_map(parse_row).map(|row| (row.pid, row)).collect())
}

/// Looks up one process; `None` if it is gone.
pub(super) fn row(pid: u32) -> io::Result<Option<ProcessInfo>> {
    let printed = ps(&["-p", &pid.to_string()], COLUMNS)?;
    Ok(lines(&printed).filter_map(parse_row).find(|row| row.pid == pid))
}

/// Runs `ps` and returns its output. Ignores the exit code, because `ps` also fails if no process matches.
fn ps(which: &[&str], columns: &str) -> io::Result<Vec<u8>> {
    let mut command = Command::new("ps");
    command.args(which).args(["-o", columns]).env("LC_ALL", "C").env("TZ", "UTC0").env_remove("COLUMNS");
    Ok(command.stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout)
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "ps failed");
}
