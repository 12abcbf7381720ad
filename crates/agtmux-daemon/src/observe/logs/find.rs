use std::fs;
use std::path::{Path, PathBuf};

use agtmux_agents::AgentLogFile;
use agtmux_tmux::platform::ProcessTable;

use crate::observe::agent_paths::{matching_entries, matching_paths};

/// Finds the logs of the first process in the agent's process tree that has any. The agent's process may be only a
/// wrapper, so the search includes its descendants. Processes after the first one with logs are ignored, because they
/// may belong to another agent.
pub(super) fn find_logs(spec: &AgentLogFile, root: &Path, pid: u32, table: &dyn ProcessTable) -> Vec<PathBuf> {
    let tree = table.trees(&[pid]).ok().and_then(|mut trees| trees.pop()?);
    let pids: Vec<u32> = tree.into_iter().flat_map(|tree| tree.processes).map(|process| process.pid).collect();
    let found = pids.iter().map(|pid| logs_of_process(spec, root, *pid, table));
    found.into_iter().find(|logs| !logs.is_empty()).unwrap_or_default()
}

fn logs_of_process(spec: &AgentLogFile, root: &Path, pid: u32, table: &dyn ProcessTable) -> Vec<PathBuf> {
    match &spec.lock {
        Some(lock) => locked_logs(spec, root, &lock.replace("{pid}", &pid.to_string())),
        None => open_logs(spec, root, pid, table),
    }
}

fn open_logs(spec: &AgentLogFile, root: &Path, pid: u32, table: &dyn ProcessTable) -> Vec<PathBuf> {
    // The kernel reports real paths, so resolve symbolic links in the root.
    let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let is_log = |path: &PathBuf| {
        let below = path.strip_prefix(&real).ok();
        below.and_then(Path::to_str).is_some_and(|below| spec.matches_path(below))
    };
    let mut found: Vec<PathBuf> = table.open_files(pid).into_iter().filter(is_log).collect();
    found.sort();
    found.dedup();
    found
}

/// The logs in all directories that contain a lock file with this name.
fn locked_logs(spec: &AgentLogFile, root: &Path, lock: &str) -> Vec<PathBuf> {
    let (above, name) = spec.path.rsplit_once('/').unwrap_or(("", &spec.path));
    let dirs = matching_paths(root, above);
    let ours = dirs.iter().filter(|dir| fs::symlink_metadata(dir.join(lock)).is_ok());
    ours.flat_map(|dir| matching_entries(dir, name)).collect()
}
