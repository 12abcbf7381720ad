//! The agents of one server: their screens, and the files that they keep about themselves.

use std::collections::BTreeSet;
use std::time::Instant;

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_tmux::{Capture, TmuxServer};

use super::ObserverContext;
use super::logs::{AgentLogs, LogUpdate};
use super::screen_judge::{ScreenEvidence, ScreenJudge};
use super::screen_schedule::ScreenSchedule;
use super::signal_router::{HintSender, ObserverHint};
use super::status_files::{AgentStatusFiles, StatusFileChange};
use super::taps::OutputTaps;
use super::watched_panes::WatchedPanes;
use crate::engine::{FileEntry, FileEvidence};

pub(super) struct ServerAgents {
    screens: ScreenSchedule,
    judge: ScreenJudge,
    files: AgentStatusFiles,
    logs: AgentLogs,
    taps: OutputTaps,
    /// Panes whose agents' files may have changed.
    changed_files: BTreeSet<u32>,
    /// Those that have nobody to talk to, and those of them that the engine knows of.
    headless: BTreeSet<(u32, ProcessRef)>,
    reported_headless: BTreeSet<(u32, ProcessRef)>,
}

impl ServerAgents {
    pub(super) fn new(osc_tap: bool) -> Self {
        Self {
            screens: ScreenSchedule::default(),
            judge: ScreenJudge::default(),
            files: AgentStatusFiles::default(),
            logs: AgentLogs::default(),
            taps: OutputTaps::new(osc_tap),
            changed_files: BTreeSet::new(),
            headless: BTreeSet::new(),
            reported_headless: BTreeSet::new(),
        }
    }

    pub(super) fn follow(&mut self, panes: &WatchedPanes, senses: &ObserverContext, now: Instant) {
        self.screens.follow(panes.agents(), now);
        self.judge.retain(|pane| self.screens.contains(pane));
        self.headless = panes.headless().collect();
        self.reported_headless.retain(|one| self.headless.contains(one));
        let (registry, table) = (senses.registry.get(), senses.processes.as_ref());
        self.changed_files.extend(self.files.follow(panes.agents(), &registry, table));
        self.changed_files.extend(self.logs.follow(panes.agents(), &registry, table));
        self.taps.follow(panes.agents(), &registry, now);
    }

    pub(super) fn pane_wrote(&mut self, pane: u32, now: Instant) {
        self.screens.pane_wrote(pane, now);
    }

    pub(super) fn agent_spoke(&mut self, pane: u32, now: Instant) {
        self.screens.agent_spoke(pane, now);
    }

    pub(super) fn file_changed(&mut self, pane: u32) {
        self.changed_files.insert(pane);
    }

    /// What was made of screens and files so far was made by other rules.
    pub(super) fn apply_new_manifests(&mut self, panes: &WatchedPanes, senses: &ObserverContext, now: Instant) {
        (self.judge, self.files, self.logs) =
            (ScreenJudge::default(), AgentStatusFiles::default(), AgentLogs::default());
        self.reported_headless.clear();
        self.follow(panes, senses, now);
        self.screens.request_all(now);
    }

    /// Nobody knows who wrote.
    pub(super) fn capture_all_soon(&mut self, now: Instant) {
        self.screens.request_all(now);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().into_iter().chain(self.taps.wake_at()).min()
    }

    pub(super) async fn open_taps(&mut self, tmux: &TmuxServer, now: Instant) {
        self.taps.open(tmux, now).await;
    }

    /// An agent that was started for one turn is in it until it ends.
    pub(super) async fn report_headless(
        &mut self,
        senses: &ObserverContext,
        server: &ServerKey,
        generation: Generation,
    ) {
        for (pane, process) in self.headless.difference(&self.reported_headless.clone()) {
            let began = senses.clock.now();
            let seen = ScreenEvidence::headless((server.clone(), generation), PaneId(*pane), *process, began);
            senses.engine.apply_screen(seen).await;
            self.reported_headless.insert((*pane, *process));
        }
    }

    /// What agents write about themselves.
    pub(super) async fn read_files(
        &mut self,
        senses: &ObserverContext,
        home: (&ServerKey, Option<Generation>),
        to: &HintSender,
    ) {
        let (server, Some(generation)) = home else { return };
        for pane in std::mem::take(&mut self.changed_files) {
            self.read_log(senses, server, pane, to).await;
            let at = senses.clock.now();
            match self.files.read(pane, &senses.router, to) {
                None => continue,
                Some(StatusFileChange::Updated { process, event_type, payload }) => {
                    let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
                    let entries = vec![FileEntry { event_type, payload, at }];
                    senses.engine.apply_file(FileEvidence { pane, process, entries, from_log: false }).await;
                }
                Some(StatusFileChange::Gone(process)) => {
                    let home = (server.clone(), generation);
                    senses.engine.apply_screen(ScreenEvidence::status_file_gone(home, PaneId(pane), process, at)).await;
                }
            }
            self.screens.agent_spoke(pane, Instant::now());
        }
    }

    async fn read_log(&mut self, senses: &ObserverContext, server: &ServerKey, pane: u32, to: &HintSender) {
        let (registry, table) = (senses.registry.get(), senses.processes.as_ref());
        let Some(LogUpdate { process, entries, more }) = self.logs.read(pane, &registry, table, (&senses.router, to))
        else {
            return;
        };
        if more {
            // Nobody is kept waiting for the rest of a long one.
            let _ = to.send(ObserverHint::AgentFileChanged(pane));
        }
        if !entries.is_empty() {
            self.screens.agent_spoke(pane, Instant::now());
            let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
            senses.engine.apply_file(FileEvidence { pane, process, entries, from_log: true }).await;
        }
    }

    /// What agents show, all that are due in one question. Says whether the server was asked.
    pub(super) async fn capture_due(
        &mut self,
        senses: &ObserverContext,
        tmux: &TmuxServer,
        server: &ServerKey,
        generation: Generation,
        now: Instant,
    ) -> bool {
        let looks = self.screens.take_due(now);
        if looks.is_empty() {
            return false;
        }
        let began = senses.clock.now();
        let panes: Vec<u32> = looks.iter().map(|look| look.pane).collect();
        let captures = capture_all(tmux, &panes).await;
        let registry = senses.registry.get();
        for look in looks {
            let capture = captures.iter().find(|c| c.pane == look.pane && c.server_pid == generation.pid);
            let Some(capture) = capture else {
                self.screens.capture_failed(look.pane, Instant::now());
                continue;
            };
            let seen = self.judge.judge(&registry, (server.clone(), generation), &look, capture, began);
            senses.engine.apply_screen(seen).await;
            // A file that could not be watched, or was not there, may be there by now.
            self.changed_files.insert(look.pane);
        }
        true
    }
}

/// A pane that is gone keeps tmux from answering for those behind it: they are asked for once more.
async fn capture_all(tmux: &TmuxServer, panes: &[u32]) -> Vec<Capture> {
    let mut captures = tmux.capture(panes).await.unwrap_or_default();
    let missing = panes.iter().position(|pane| !captures.iter().any(|capture| capture.pane == *pane));
    let behind = missing.map(|at| &panes[at + 1..]).unwrap_or_default();
    if !behind.is_empty() {
        captures.extend(tmux.capture(behind).await.unwrap_or_default());
    }
    captures
}
