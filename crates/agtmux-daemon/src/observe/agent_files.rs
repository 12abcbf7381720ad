//! The status files, logs and terminal output of the agents of one local server.

use std::collections::BTreeSet;
use std::time::Instant;

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::PaneId;
use agtmux_tmux::TmuxServer;

use super::ObserverContext;
use super::logs::{AgentLogs, LogUpdate};
use super::screen_judge::ScreenEvidence;
use super::server_observer::ServerObserver;
use super::signal_router::{HintSender, ObserverHint};
use super::status_files::{AgentStatusFiles, StatusFileChange};
use super::taps::OutputTaps;
use super::watched_panes::WatchedPanes;
use crate::engine::{FileEntry, FileEvidence};

pub(super) struct AgentFiles {
    status_files: AgentStatusFiles,
    logs: AgentLogs,
    taps: OutputTaps,
    /// Panes whose agents may have changed their files.
    changed: BTreeSet<u32>,
}

impl AgentFiles {
    pub(super) fn new(osc_tap: bool) -> Self {
        Self {
            status_files: AgentStatusFiles::default(),
            logs: AgentLogs::default(),
            taps: OutputTaps::new(osc_tap),
            changed: BTreeSet::new(),
        }
    }

    pub(super) fn follow(&mut self, panes: &WatchedPanes, context: &ObserverContext, now: Instant) {
        let (registry, table) = (context.registry.get(), context.processes.as_ref());
        self.changed.extend(self.status_files.follow(panes.agents(), &registry, table));
        self.changed.extend(self.logs.follow(panes.agents(), &registry, table));
        self.taps.follow(panes.agents(), &registry, now);
    }

    pub(super) fn file_changed(&mut self, pane: u32) {
        self.changed.insert(pane);
    }

    /// Forgets everything read with the old manifests, and reads all files again.
    pub(super) fn apply_new_manifests(&mut self, panes: &WatchedPanes, context: &ObserverContext, now: Instant) {
        (self.status_files, self.logs) = (AgentStatusFiles::default(), AgentLogs::default());
        self.follow(panes, context, now);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.taps.wake_at()
    }

    pub(super) async fn open_taps(&mut self, tmux: &TmuxServer, now: Instant) {
        self.taps.open(tmux, now).await;
    }

    /// Reads the changed status files and logs and reports them to the engine.
    pub(super) async fn read(&mut self, context: &ObserverContext, observer: &mut ServerObserver, to: &HintSender) {
        let Some(generation) = observer.generation else { return };
        for number in std::mem::take(&mut self.changed) {
            self.read_log(context, observer, number, to).await;
            let (at, pane) = (context.clock.now(), PaneId(number));
            match self.status_files.read(number, &context.router, to) {
                None => continue,
                Some(StatusFileChange::Updated { process, event_type, payload }) => {
                    let pane = PaneKey { server: observer.key.clone(), pane };
                    let entries = vec![FileEntry { event_type, payload, at }];
                    context.engine.apply_file(FileEvidence { pane, process, entries, from_log: false }).await;
                }
                Some(StatusFileChange::Gone(process)) => {
                    let server = (observer.key.clone(), generation);
                    let evidence = ScreenEvidence::status_file_gone(server, pane, process, at);
                    context.engine.apply_screen(evidence).await;
                }
            }
            observer.screens.agent_sent_event(number, Instant::now());
        }
    }

    async fn read_log(&mut self, context: &ObserverContext, observer: &mut ServerObserver, pane: u32, to: &HintSender) {
        let (registry, table) = (context.registry.get(), context.processes.as_ref());
        let Some(LogUpdate { process, entries, more }) = self.logs.read(pane, &registry, table, (&context.router, to))
        else {
            return;
        };
        if more {
            // Read the rest of a long log later, so that other work is not delayed.
            let _ = to.send(ObserverHint::AgentFileChanged(pane));
        }
        if !entries.is_empty() {
            observer.screens.agent_sent_event(pane, Instant::now());
            let pane = PaneKey { server: observer.key.clone(), pane: PaneId(pane) };
            context.engine.apply_file(FileEvidence { pane, process, entries, from_log: true }).await;
        }
    }
}
