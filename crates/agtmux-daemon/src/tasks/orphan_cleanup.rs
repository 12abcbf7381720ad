//! Removes files that were left behind: by runs whose windows closed while no daemon ran, and by processes that were
//! killed while writing a file.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::Duration;

use agtmux_api::task_files::RunFiles;
use agtmux_core::task::RunId;

use super::Tasks;

/// How often orphaned files are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);
/// Files that are younger than this are kept, because they may belong to a run that is just starting.
const MIN_AGE: Duration = Duration::from_secs(60);

impl Tasks {
    /// Removes orphaned files at intervals, until the daemon stops.
    pub(super) async fn remove_orphans(self) {
        let mut times = tokio::time::interval(CLEANUP_INTERVAL);
        loop {
            times.tick().await;
            let sessions = self.0.engine.task_sessions().all();
            let runs = sessions.values().flat_map(|session| session.runs.keys().chain(session.machine.runs()));
            let known: HashSet<RunId> = runs.cloned().collect();
            let dir = self.0.dir.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || remove_orphan_files(&dir, &known)).await {
                tracing::warn!(%error, "cannot remove files of ended tasks");
            }
        }
    }
}

fn remove_orphan_files(dir: &Path, known: &HashSet<RunId>) {
    let entries = [dir.to_owned(), dir.join("logs")].into_iter().filter_map(|dir| fs::read_dir(dir).ok());
    for entry in entries.flat_map(Iterator::flatten) {
        if is_orphan(&entry, dir, known) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_orphan(entry: &DirEntry, dir: &Path, known: &HashSet<RunId>) -> bool {
    let name = entry.file_name();
    let Some((run, kind)) = name.to_str().and_then(|name| name.split_once('.')) else { return false };
    let Ok(run) = run.parse::<RunId>() else { return false };
    let is_old =
        || entry.metadata().and_then(|data| data.modified()).is_ok_and(|at| at.elapsed().unwrap_or_default() > MIN_AGE);
    match kind {
        "run.draft" | "exit.draft" | "out.draft" | "spec.draft" => is_old(),
        "log" | "log.1" | "spec" | "exit" | "out" => {
            !known.contains(&run) && !RunFiles::in_dir(dir, run.as_str()).spec().exists() && is_old()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_old_files_of_unknown_runs_are_removed() {
        let dir = std::env::temp_dir().join(format!("agtmux-orphans-{}", std::process::id()));
        fs::create_dir_all(dir.join("logs")).expect("created");
        let put = |name: &str, age: u64| {
            let file = fs::File::create(dir.join(name)).expect("created");
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("set");
        };
        let stay = ["logs/known.log", "logs/begun.log", "begun.run", "logs/young.log", "young.run.draft", "notes.txt"];
        let stay =
            [&stay[..], &["logs/known.spec", "logs/begun.spec", "logs/young.spec", "logs/young.spec.draft"]].concat();
        let go = ["logs/gone.log", "logs/gone.log.1", "gone.exit", "gone.out", "known.exit.draft", "gone.run.draft"];
        let go = [&go[..], &["logs/gone.spec", "logs/known.spec.draft"]].concat();
        for name in stay.iter().chain(&go) {
            put(name, if name.contains("young") { 1 } else { 3600 });
        }
        remove_orphan_files(&dir, &HashSet::from(["known".parse().expect("an id")]));
        let is_there = |name: &&&str| dir.join(name).exists();
        assert_eq!(stay.iter().filter(|name| !is_there(name)).collect::<Vec<_>>(), Vec::<&&str>::new(), "went");
        assert_eq!(go.iter().filter(is_there).collect::<Vec<_>>(), Vec::<&&str>::new(), "stayed");
        fs::remove_dir_all(&dir).expect("removed");
    }
}
