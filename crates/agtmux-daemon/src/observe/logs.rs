//! Logs that agents write of what they do, followed from where they are.

mod find;
mod lines;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::{LogFile, Registry};
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_tmux::platform::ProcessTable;
use jiff::Timestamp;
use serde_json::Value;

use super::files::{self, root_of};
use super::residents::Residents;
use super::switchboard::{Notice, Notices, Switchboard, Watch};
use crate::engine::FiledEntry;
use lines::Tail;

/// An agent may begin another log at any time; that it did shows on its screen first. One that has none yet is about to
/// begin its first.
const FIND_AGAIN: Duration = Duration::from_secs(2);
const FIND_FIRST: Duration = Duration::from_millis(250);

/// The logs of one server's agents.
#[derive(Default)]
pub(super) struct AgentLogs {
    logs: Residents<AgentLog>,
}

struct AgentLog {
    process: ProcessRef,
    agent_type: AgentType,
    kept: LogFile,
    root: PathBuf,
    /// What was written before the agent's process began is about another one.
    began: Option<Timestamp>,
    looked_at: Option<Instant>,
    open: Option<OpenLog>,
}

struct OpenLog {
    path: PathBuf,
    tail: Tail,
    _watch: Option<Watch>,
}

/// What an agent has written down since the last look.
pub(super) struct Written {
    pub(super) process: ProcessRef,
    pub(super) entries: Vec<FiledEntry>,
    /// There is still more.
    pub(super) more: bool,
}

impl AgentLogs {
    /// Follows the agents that were found. Gives back the panes whose logs are worth a first look.
    pub(super) fn follow<'a>(
        &mut self,
        found: impl Iterator<Item = (u32, &'a AgentType, ProcessRef)>,
        registry: &Registry,
        table: &dyn ProcessTable,
    ) -> Vec<u32> {
        self.logs.follow(found, |agent_type, process| {
            AgentLog::new(registry.log_file(agent_type.as_str())?, agent_type, process, table)
        })
    }

    pub(super) fn read(
        &mut self,
        pane: u32,
        registry: &Registry,
        table: &dyn ProcessTable,
        (board, to): (&Arc<Switchboard>, &Notices),
    ) -> Option<Written> {
        let log = self.logs.get_mut(pane)?;
        log.find(pane, table, board, to);
        let open = log.open.as_mut()?;
        let (file, length) = files::open(&open.path)?;
        let (lines, more) = open.tail.read(file, length);
        let documents = lines.iter().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        let entries = documents.filter_map(|document| log.entry(document, registry)).collect();
        Some(Written { process: log.process, entries, more })
    }
}

impl AgentLog {
    fn new(kept: &LogFile, agent_type: &AgentType, process: ProcessRef, table: &dyn ProcessTable) -> Option<Self> {
        let root = root_of(kept.root_variable.as_deref(), &kept.root, process, table)?;
        let began = files::began(process, table);
        let (agent_type, kept) = (agent_type.clone(), kept.clone());
        Some(Self { process, agent_type, kept, root, began, looked_at: None, open: None })
    }

    fn find(&mut self, pane: u32, table: &dyn ProcessTable, board: &Arc<Switchboard>, to: &Notices) {
        let now = Instant::now();
        let pause = if self.open.is_some() { FIND_AGAIN } else { FIND_FIRST };
        if self.looked_at.is_some_and(|at| now < at + pause) {
            return;
        }
        self.looked_at = Some(now);
        let found = find::logs(&self.kept, &self.root, self.process.pid, table);
        // It may be closed between two lines, and others may be open beside it.
        if self.open.as_ref().is_some_and(|open| found.contains(&open.path)) {
            return;
        }
        // Of several nobody knows which is the one that the user talks to.
        let Ok([path]) = <[PathBuf; 1]>::try_from(found) else { return };
        let watch = path.parent().and_then(|dir| board.contents(dir, to, Notice::AgentFile(pane)).ok());
        // Where it is not known when the agent began, nothing of what is there is known to be its own.
        let tail = if self.began.is_some() { Tail::near_the_end() } else { Tail::at_the_end() };
        self.open = Some(OpenLog { path, tail, _watch: watch });
    }

    fn entry(&self, payload: Value, registry: &Registry) -> Option<FiledEntry> {
        let at = self.kept.time(&payload)?;
        let event_type = self.kept.event_type(&payload)?;
        if self.began.is_some_and(|began| at < began) || !registry.reads(self.agent_type.as_str(), event_type) {
            return None;
        }
        Some(FiledEntry { event_type: event_type.to_owned(), payload, at })
    }
}
