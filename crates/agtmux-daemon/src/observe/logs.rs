//! Follows the logs that agents write about their work.

mod find;
mod tail;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_agents::{AgentLogFile, KnownAgent};
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::platform::ProcessTable;
use jiff::Timestamp;
use serde_json::Value;

use super::ObserverContext;
use super::agent_paths::{agent_file_root, open_own_file};
use super::signal_router::{HintWatcher, ObserverHint, WatchGuard, WatchSubject};
use super::status_files;
use crate::engine::FileEntry;
use tail::LogTail;

/// How often to search for a newer log of an agent, because an agent may start a new log at any time.
/// `FIRST_SEARCH_INTERVAL` applies until the agent's first log is found.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);
const FIRST_SEARCH_INTERVAL: Duration = Duration::from_millis(250);

/// The log of one agent.
pub(super) struct AgentLog {
    process: ProcessRef,
    agent_type: AgentType,
    spec: AgentLogFile,
    root: PathBuf,
    /// When the process started. Older entries in the log are about an earlier process.
    process_started_at: Option<Timestamp>,
    searched_at: Option<Instant>,
    open: Option<OpenLog>,
}

struct OpenLog {
    path: PathBuf,
    tail: LogTail,
    _watch: Option<WatchGuard>,
}

/// The new entries in an agent's log.
pub(super) struct LogUpdate {
    pub(super) process: ProcessRef,
    pub(super) entries: Vec<FileEntry>,
    /// Whether the log has more entries to read.
    pub(super) more: bool,
}

impl AgentLog {
    pub(super) fn new(
        spec: &AgentLogFile,
        agent_type: &AgentType,
        process: ProcessRef,
        table: &dyn ProcessTable,
    ) -> Option<Self> {
        let root = agent_file_root(spec.root_variable.as_deref(), &spec.root, process, table)?;
        let process_started_at = status_files::process_started_at(process, table);
        let (agent_type, spec) = (agent_type.clone(), spec.clone());
        Some(Self { process, agent_type, spec, root, process_started_at, searched_at: None, open: None })
    }

    /// Computes the start time of the process again. Called when the clock was set.
    pub(super) fn clock_stepped(&mut self, table: &dyn ProcessTable) {
        self.process_started_at = status_files::process_started_at(self.process, table);
    }

    /// Reads the new entries of this pane's agent.
    pub(super) fn read(&mut self, pane: u32, context: &ObserverContext, watcher: &HintWatcher) -> Option<LogUpdate> {
        let registry = context.registry.get();
        let agent = registry.agent(self.agent_type.as_str())?;
        self.find(pane, context.processes.as_ref(), watcher);
        let open = self.open.as_mut()?;
        let (file, length) = open_own_file(&open.path)?;
        let (lines, more) = open.tail.read(file, length);
        let documents = lines.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let entries = documents.filter_map(|document| self.entry(document, agent)).collect();
        Some(LogUpdate { process: self.process, entries, more })
    }

    fn find(&mut self, pane: u32, table: &dyn ProcessTable, watcher: &HintWatcher) {
        let now = Instant::now();
        let pause = if self.open.is_some() { SEARCH_INTERVAL } else { FIRST_SEARCH_INTERVAL };
        if self.searched_at.is_some_and(|at| now < at + pause) {
            return;
        }
        self.searched_at = Some(now);
        let found = find::find_logs(&self.spec, &self.root, self.process.pid, table);
        // The agent may have other logs open as well. Keep following the same one.
        if self.open.as_ref().is_some_and(|open| found.contains(&open.path)) {
            return;
        }
        // If there are several logs, agtmux cannot tell which one belongs to the current conversation.
        let Ok([path]) = <[PathBuf; 1]>::try_from(found) else { return };
        let watch = |dir| watcher.watch(WatchSubject::DirContents(dir), ObserverHint::AgentFileChanged(pane)).ok();
        let watch = path.parent().and_then(watch);
        // If the start time of the agent is unknown, existing entries may be from an earlier process, so skip them.
        let tail = if self.process_started_at.is_some() { LogTail::near_the_end() } else { LogTail::at_the_end() };
        self.open = Some(OpenLog { path, tail, _watch: watch });
    }

    fn entry(&self, payload: Value, agent: &KnownAgent) -> Option<FileEntry> {
        let at = self.spec.time(&payload)?;
        let event_type = self.spec.event_type(&payload)?;
        if self.process_started_at.is_some_and(|process_started_at| at < process_started_at)
            || !agent.reads_file_event(event_type)
        {
            return None;
        }
        Some(FileEntry { event_type: event_type.to_owned(), payload, at })
    }
}
