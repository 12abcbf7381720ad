//! Logs that agents write of what they do, followed from where they are.

mod find;
mod tail;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::{AgentLogFile, AgentRegistry};
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::platform::ProcessTable;
use jiff::Timestamp;
use serde_json::Value;

use super::agent_map::AgentMap;
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard};
use super::status_files::{self, agent_file_root};
use crate::engine::FileEntry;
use tail::LogTail;

/// An agent may begin another log at any time; that it did shows on its screen first. One that has none yet is about to
/// begin its first.
const SEARCH_INTERVAL: Duration = Duration::from_secs(2);
const FIRST_SEARCH_INTERVAL: Duration = Duration::from_millis(250);

/// The logs of one server's agents.
#[derive(Default)]
pub(super) struct AgentLogs {
    logs: AgentMap<AgentLog>,
}

struct AgentLog {
    process: ProcessRef,
    agent_type: AgentType,
    spec: AgentLogFile,
    root: PathBuf,
    /// What was written before the agent's process began is about another one.
    process_started_at: Option<Timestamp>,
    searched_at: Option<Instant>,
    open: Option<OpenLog>,
}

struct OpenLog {
    path: PathBuf,
    tail: LogTail,
    _watch: Option<WatchGuard>,
}

/// What an agent has written down since the last look.
pub(super) struct LogUpdate {
    pub(super) process: ProcessRef,
    pub(super) entries: Vec<FileEntry>,
    /// There is still more.
    pub(super) more: bool,
}

impl AgentLogs {
    /// Follows the agents that were found. Gives back the panes whose logs are worth a first look.
    pub(super) fn follow<'a>(
        &mut self,
        found: impl Iterator<Item = (u32, &'a AgentType, ProcessRef)>,
        registry: &AgentRegistry,
        table: &dyn ProcessTable,
    ) -> Vec<u32> {
        self.logs.follow(found, |agent_type, process| {
            AgentLog::new(registry.log_file(agent_type.as_str())?, agent_type, process, table)
        })
    }

    pub(super) fn read(
        &mut self,
        pane: u32,
        registry: &AgentRegistry,
        table: &dyn ProcessTable,
        (board, to): (&Arc<SignalRouter>, &HintSender),
    ) -> Option<LogUpdate> {
        let log = self.logs.get_mut(pane)?;
        log.find(pane, table, board, to);
        let open = log.open.as_mut()?;
        let (file, length) = status_files::open_own_file(&open.path)?;
        let (lines, more) = open.tail.read(file, length);
        let documents = lines.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let entries = documents.filter_map(|document| log.entry(document, registry)).collect();
        Some(LogUpdate { process: log.process, entries, more })
    }
}

impl AgentLog {
    fn new(kept: &AgentLogFile, agent_type: &AgentType, process: ProcessRef, table: &dyn ProcessTable) -> Option<Self> {
        let root = agent_file_root(kept.root_variable.as_deref(), &kept.root, process, table)?;
        let began = status_files::process_started_at(process, table);
        let (agent_type, kept) = (agent_type.clone(), kept.clone());
        Some(Self { process, agent_type, spec: kept, root, process_started_at: began, searched_at: None, open: None })
    }

    fn find(&mut self, pane: u32, table: &dyn ProcessTable, board: &Arc<SignalRouter>, to: &HintSender) {
        let now = Instant::now();
        let pause = if self.open.is_some() { SEARCH_INTERVAL } else { FIRST_SEARCH_INTERVAL };
        if self.searched_at.is_some_and(|at| now < at + pause) {
            return;
        }
        self.searched_at = Some(now);
        let found = find::find_logs(&self.spec, &self.root, self.process.pid, table);
        // It may be closed between two lines, and others may be open beside it.
        if self.open.as_ref().is_some_and(|open| found.contains(&open.path)) {
            return;
        }
        // Of several nobody knows which is the one that the user talks to.
        let Ok([path]) = <[PathBuf; 1]>::try_from(found) else { return };
        let watch =
            path.parent().and_then(|dir| board.watch_contents(dir, to, ObserverHint::AgentFileChanged(pane)).ok());
        // Where it is not known when the agent began, nothing of what is there is known to be its own.
        let tail = if self.process_started_at.is_some() { LogTail::near_the_end() } else { LogTail::at_the_end() };
        self.open = Some(OpenLog { path, tail, _watch: watch });
    }

    fn entry(&self, payload: Value, registry: &AgentRegistry) -> Option<FileEntry> {
        let at = self.spec.time(&payload)?;
        let event_type = self.spec.event_type(&payload)?;
        if self.process_started_at.is_some_and(|began| at < began)
            || !registry.reads_file_event(self.agent_type.as_str(), event_type)
        {
            return None;
        }
        Some(FileEntry { event_type: event_type.to_owned(), payload, at })
    }
}
