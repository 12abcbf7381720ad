//! Reads the status files, logs and terminal output of the agents of one local server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use agtmux_core::evidence::Source;
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{AgentType, PaneId};
use jiff::SignedDuration;

use super::ObserverContext;
use super::agent_map::AgentMap;
use super::logs::{AgentLog, LogUpdate};
use super::screen_judge::ScreenEvidence;
use super::server_observer::ServerObserver;
use super::signal_router::{HintWatcher, ObserverHint};
use super::status_files::{StatusFileChange, StatusFileReader};
use super::taps::OutputTaps;
use super::watched_panes::WatchedPanes;
use crate::engine::{FileEntry, FileEvidence};

pub(super) struct AgentFiles {
    context: Arc<ObserverContext>,
    watcher: HintWatcher,
    status_files: AgentMap<StatusFileReader>,
    logs: AgentMap<AgentLog>,
    pub(super) taps: OutputTaps,
    /// The panes of agents that may have changed their files.
    changed: BTreeSet<u32>,
    /// How far the system clock had been set forward or back in total when the start times of the agents were computed.
    clock_steps: SignedDuration,
}

impl AgentFiles {
    pub(super) fn new(context: Arc<ObserverContext>, watcher: HintWatcher) -> Self {
        let taps = OutputTaps::new(context.config.observe.osc_tap);
        let (status_files, logs) = (AgentMap::default(), AgentMap::default());
        let clock_steps = context.clock.total_step();
        Self { context, watcher, status_files, logs, taps, changed: BTreeSet::new(), clock_steps }
    }

    pub(super) fn follow(&mut self, panes: &WatchedPanes, now: Instant) {
        let (registry, table) = (self.context.registry.get(), self.context.processes.as_ref());
        let status_file = |agent_type: &AgentType, process| {
            StatusFileReader::new(registry.agent(agent_type.as_str())?.status_file()?, process, table)
        };
        let log = |agent_type: &AgentType, process| {
            AgentLog::new(registry.agent(agent_type.as_str())?.log_file()?, agent_type, process, table)
        };
        self.changed.extend(self.status_files.follow(panes.agents(), status_file));
        self.changed.extend(self.logs.follow(panes.agents(), log));
        self.taps.follow(panes, &registry, now);
    }

    pub(super) fn file_changed(&mut self, pane: u32) {
        self.changed.insert(pane);
    }

    /// Forgets everything that was read with the old manifests. All files are then read again.
    pub(super) fn apply_new_manifests(&mut self, panes: &WatchedPanes, now: Instant) {
        (self.status_files, self.logs) = (AgentMap::default(), AgentMap::default());
        self.follow(panes, now);
    }

    /// Reads the status files and logs that have changed, and reports their entries to the engine.
    pub(super) async fn read(&mut self, observer: &mut ServerObserver) {
        let Some(generation) = observer.generation else { return };
        if !self.changed.is_empty() {
            self.follow_clock();
        }
        for number in std::mem::take(&mut self.changed) {
            self.read_log(observer, number).await;
            let (at, pane) = (self.context.clock.now(), PaneId(number));
            match self.status_files.get_mut(number).and_then(|file| file.read(number, &self.watcher)) {
                None => continue,
                Some(StatusFileChange::Updated { process, event_type, payload }) => {
                    let pane = PaneKey { server: observer.key.clone(), pane };
                    let entries = vec![FileEntry { event_type, payload, at }];
                    self.context.engine.apply_file(FileEvidence { pane, process, entries, from_log: false }).await;
                }
                Some(StatusFileChange::Gone(process)) => {
                    let server = (observer.key.clone(), generation);
                    let no_evidence = ScreenEvidence::new(server, pane, process, at);
                    let evidence = ScreenEvidence { silent_sources: vec![Source::File], ..no_evidence };
                    self.context.engine.apply_screen(evidence).await;
                }
            }
            observer.screens.agent_sent_event(number, Instant::now());
        }
    }

    /// If the wall clock was set, computes the start times of the agents again. Agents date their files by the wall
    /// clock.
    fn follow_clock(&mut self) {
        let steps = self.context.clock.total_step();
        if std::mem::replace(&mut self.clock_steps, steps) != steps {
            let table = self.context.processes.as_ref();
            self.status_files.iter_mut().for_each(|(_, _, _, file)| file.clock_stepped(table));
            self.logs.iter_mut().for_each(|(_, _, _, log)| log.clock_stepped(table));
        }
    }

    async fn read_log(&mut self, observer: &mut ServerObserver, pane: u32) {
        let Some(log) = self.logs.get_mut(pane) else { return };
        let update = log.read(pane, &self.context, &self.watcher);
        let Some(LogUpdate { process, entries, more }) = update else { return };
        if more {
            // Read the rest of a long log later, so that other work is not delayed.
            self.watcher.send(ObserverHint::AgentFileChanged(pane));
        }
        if !entries.is_empty() {
            observer.screens.agent_sent_event(pane, Instant::now());
            let pane = PaneKey { server: observer.key.clone(), pane: PaneId(pane) };
            self.context.engine.apply_file(FileEvidence { pane, process, entries, from_log: true }).await;
        }
    }
}
