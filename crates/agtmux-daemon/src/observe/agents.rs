//! The agents of one tmux server: captures their screens, and reads their status files and logs.

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
    /// Panes whose agents may have changed their files.
    changed_files: BTreeSet<u32>,
    /// The headless agents, and those of them that were reported to the engine.
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

    pub(super) fn follow(&mut self, panes: &WatchedPanes, context: &ObserverContext, now: Instant) {
        self.screens.follow(panes.agents(), now);
        self.judge.retain(|pane| self.screens.contains(pane));
        self.headless = panes.headless().collect();
        self.reported_headless.retain(|one| self.headless.contains(one));
        let (registry, table) = (context.registry.get(), context.processes.as_ref());
        self.changed_files.extend(self.files.follow(panes.agents(), &registry, table));
        self.changed_files.extend(self.logs.follow(panes.agents(), &registry, table));
        self.taps.follow(panes.agents(), &registry, now);
    }

    pub(super) fn pane_wrote(&mut self, pane: u32, now: Instant) {
        self.screens.pane_wrote(pane, now);
    }

    pub(super) fn agent_sent_event(&mut self, pane: u32, now: Instant) {
        self.screens.agent_sent_event(pane, now);
    }

    pub(super) fn file_changed(&mut self, pane: u32) {
        self.changed_files.insert(pane);
    }

    /// Forgets everything read with the old manifests, and reads all screens and files again.
    pub(super) fn apply_new_manifests(&mut self, panes: &WatchedPanes, context: &ObserverContext, now: Instant) {
        (self.judge, self.files, self.logs) =
            (ScreenJudge::default(), AgentStatusFiles::default(), AgentLogs::default());
        self.reported_headless.clear();
        self.follow(panes, context, now);
        self.screens.request_all(now);
    }

    /// Captures all screens soon, because output hints were lost.
    pub(super) fn capture_all_soon(&mut self, now: Instant) {
        self.screens.request_all(now);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().into_iter().chain(self.taps.wake_at()).min()
    }

    pub(super) async fn open_taps(&mut self, tmux: &TmuxServer, now: Instant) {
        self.taps.open(tmux, now).await;
    }

    /// Reports headless agents as running: an agent started for one turn runs until it ends.
    pub(super) async fn report_headless(
        &mut self,
        context: &ObserverContext,
        server: &ServerKey,
        generation: Generation,
    ) {
        for (pane, process) in self.headless.difference(&self.reported_headless.clone()) {
            let began = context.clock.now();
            let evidence = ScreenEvidence::headless((server.clone(), generation), PaneId(*pane), *process, began);
            context.engine.apply_screen(evidence).await;
            self.reported_headless.insert((*pane, *process));
        }
    }

    /// Reads the changed status files and logs and reports them to the engine.
    pub(super) async fn read_files(
        &mut self,
        context: &ObserverContext,
        home: (&ServerKey, Option<Generation>),
        to: &HintSender,
    ) {
        let (server, Some(generation)) = home else { return };
        for pane in std::mem::take(&mut self.changed_files) {
            self.read_log(context, server, pane, to).await;
            let at = context.clock.now();
            match self.files.read(pane, &context.router, to) {
                None => continue,
                Some(StatusFileChange::Updated { process, event_type, payload }) => {
                    let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
                    let entries = vec![FileEntry { event_type, payload, at }];
                    context.engine.apply_file(FileEvidence { pane, process, entries, from_log: false }).await;
                }
                Some(StatusFileChange::Gone(process)) => {
                    let home = (server.clone(), generation);
                    context
                        .engine
                        .apply_screen(ScreenEvidence::status_file_gone(home, PaneId(pane), process, at))
                        .await;
                }
            }
            self.screens.agent_sent_event(pane, Instant::now());
        }
    }

    async fn read_log(&mut self, context: &ObserverContext, server: &ServerKey, pane: u32, to: &HintSender) {
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
            self.screens.agent_sent_event(pane, Instant::now());
            let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
            context.engine.apply_file(FileEvidence { pane, process, entries, from_log: true }).await;
        }
    }

    /// Captures all due screens in one tmux command. Returns whether tmux was asked.
    pub(super) async fn capture_due(
        &mut self,
        context: &ObserverContext,
        tmux: &TmuxServer,
        server: &ServerKey,
        generation: Generation,
        now: Instant,
    ) -> bool {
        let due = self.screens.take_due(now);
        if due.is_empty() {
            return false;
        }
        let began = context.clock.now();
        let panes: Vec<u32> = due.iter().map(|request| request.pane).collect();
        let captures = capture_all(tmux, &panes).await;
        let registry = context.registry.get();
        for request in due {
            let capture = captures.iter().find(|c| c.pane == request.pane && c.server_pid == generation.pid);
            let Some(capture) = capture else {
                self.screens.capture_failed(request.pane, Instant::now());
                continue;
            };
            let evidence = self.judge.judge(&registry, (server.clone(), generation), &request, capture, began);
            context.engine.apply_screen(evidence).await;
            // A file that did not exist or could not be watched may be readable now.
            self.changed_files.insert(request.pane);
        }
        true
    }
}

/// Captures panes. tmux stops at the first missing pane, so the panes after it are captured in a second command.
async fn capture_all(tmux: &TmuxServer, panes: &[u32]) -> Vec<Capture> {
    let mut captures = tmux.capture(panes).await.unwrap_or_default();
    let missing = panes.iter().position(|pane| !captures.iter().any(|capture| capture.pane == *pane));
    let behind = missing.map(|at| &panes[at + 1..]).unwrap_or_default();
    if !behind.is_empty() {
        captures.extend(tmux.capture(behind).await.unwrap_or_default());
    }
    captures
}
