//! Reads the status files that agents write about themselves.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agtmux_agents::AgentStatusFile;
use agtmux_core::ids::ProcessRef;
use agtmux_tmux::platform::{ProcessTable, is_exhausted};
use jiff::Timestamp;
use serde_json::Value;

use super::agent_paths::{agent_file_root, open_own_file};
use super::signal_router::{HintWatcher, ObserverHint, WatchGuard, WatchSubject};

/// The largest status file that is read.
const MAX_STATUS_BYTES: u64 = 64 << 10;

/// The status file of one agent.
pub(super) struct StatusFileReader {
    process: ProcessRef,
    /// When the agent's process started. Older content is about an earlier process.
    process_started_at: Option<Timestamp>,
    path: PathBuf,
    spec: AgentStatusFile,
    watch: Option<WatchGuard>,
    content: Option<Vec<u8>>,
}

/// What changed in a status file.
pub(super) enum StatusFileChange {
    Updated {
        process: ProcessRef,
        event_type: String,
        payload: Value,
    },
    /// The file was removed.
    Gone(ProcessRef),
}

impl StatusFileReader {
    pub(super) fn new(spec: &AgentStatusFile, process: ProcessRef, table: &dyn ProcessTable) -> Option<Self> {
        let root = agent_file_root(spec.root_variable.as_deref(), &spec.root, process, table)?;
        let path = root.join(spec.path.replace("{pid}", &process.pid.to_string()));
        let started_at = process_started_at(process, table);
        Some(Self { process, process_started_at: started_at, path, spec: spec.clone(), watch: None, content: None })
    }

    /// Computes the start time of the process again, because the clock was set.
    pub(super) fn clock_stepped(&mut self, table: &dyn ProcessTable) {
        self.process_started_at = process_started_at(self.process, table);
    }

    /// Reads the status file of this pane's agent. Returns `None` if the file never existed, is incomplete, is
    /// unchanged, or belongs to an earlier process.
    pub(super) fn read(&mut self, pane: u32, watcher: &HintWatcher) -> Option<StatusFileChange> {
        // The directory of the file may not exist before the first agent runs.
        if self.watch.is_none()
            && let Some(dir) = self.path.parent()
        {
            self.watch = watcher.watch(WatchSubject::DirContents(dir), ObserverHint::AgentFileChanged(pane)).ok();
        }
        let Some((content, modified)) = read(&self.path) else {
            // Without a free file descriptor it is unknown whether the file is gone.
            if File::open("/dev/null").is_err_and(|error| is_exhausted(&error)) {
                return None;
            }
            return self.content.take().map(|_| StatusFileChange::Gone(self.process));
        };
        if self.content.as_ref() == Some(&content) {
            return None;
        }
        let payload = serde_json::from_slice(&content).ok()?;
        if !self.spec.is_about(&payload, (self.process.start, self.process_started_at), modified) {
            return None;
        }
        self.content = Some(content);
        Some(StatusFileChange::Updated { process: self.process, event_type: self.spec.event.clone(), payload })
    }
}

/// The wall clock time at which the process started.
pub(super) fn process_started_at(process: ProcessRef, table: &dyn ProcessTable) -> Option<Timestamp> {
    table.started_at(process.pid).and_then(|at| Timestamp::try_from(at).ok())
}

/// Reads the content of a file and its modification time.
fn read(path: &Path) -> Option<(Vec<u8>, Option<Timestamp>)> {
    let (file, _) = open_own_file(path).filter(|(_, length)| *length <= MAX_STATUS_BYTES)?;
    let modified = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut content = Vec::new();
    file.take(MAX_STATUS_BYTES).read_to_end(&mut content).ok()?;
    Some((content, modified.and_then(|at| Timestamp::try_from(at).ok())))
}
