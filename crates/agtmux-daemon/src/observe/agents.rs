//! The agents of one server: their screens, and the files that they keep about themselves.

use std::collections::BTreeSet;
use std::time::Instant;

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_tmux::{Capture, TmuxServer};

use super::Senses;
use super::files::{AgentFiles, Status};
use super::logs::{AgentLogs, Written};
use super::screens::Screens;
use super::seen::{Eyes, Seen};
use super::switchboard::{Notice, Notices};
use super::taps::Taps;
use super::watched::WatchedPanes;
use crate::engine::{Filed, FiledEntry};

pub(super) struct Agents {
    screens: Screens,
    eyes: Eyes,
    files: AgentFiles,
    logs: AgentLogs,
    taps: Taps,
    /// Panes whose agents' files may have changed.
    filed: BTreeSet<u32>,
    /// Those that have nobody to talk to, and those of them that the engine knows of.
    headless: BTreeSet<(u32, ProcessRef)>,
    told: BTreeSet<(u32, ProcessRef)>,
}

impl Agents {
    pub(super) fn new(osc_tap: bool) -> Self {
        Self {
            screens: Screens::default(),
            eyes: Eyes::default(),
            files: AgentFiles::default(),
            logs: AgentLogs::default(),
            taps: Taps::new(osc_tap),
            filed: BTreeSet::new(),
            headless: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    pub(super) fn follow(&mut self, panes: &WatchedPanes, senses: &Senses, now: Instant) {
        self.screens.follow(panes.agents(), now);
        self.eyes.forget_all_but(|pane| self.screens.holds(pane));
        self.headless = panes.headless().collect();
        self.told.retain(|one| self.headless.contains(one));
        let (registry, table) = (senses.roster.now(), senses.processes.as_ref());
        self.filed.extend(self.files.follow(panes.agents(), &registry, table));
        self.filed.extend(self.logs.follow(panes.agents(), &registry, table));
        self.taps.follow(panes.agents(), &registry, now);
    }

    pub(super) fn wrote(&mut self, pane: u32, now: Instant) {
        self.screens.wrote(pane, now);
    }

    pub(super) fn said(&mut self, pane: u32, now: Instant) {
        self.screens.said(pane, now);
    }

    pub(super) fn filed(&mut self, pane: u32) {
        self.filed.insert(pane);
    }

    /// What was made of screens and files so far was made by other rules.
    pub(super) fn relearn(&mut self, panes: &WatchedPanes, senses: &Senses, now: Instant) {
        (self.eyes, self.files, self.logs) = (Eyes::default(), AgentFiles::default(), AgentLogs::default());
        self.told.clear();
        self.follow(panes, senses, now);
        self.screens.look_at_all(now);
    }

    /// Nobody knows who wrote.
    pub(super) fn look_at_all(&mut self, now: Instant) {
        self.screens.look_at_all(now);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().into_iter().chain(self.taps.wake_at()).min()
    }

    pub(super) async fn tap(&mut self, tmux: &TmuxServer, now: Instant) {
        self.taps.open(tmux, now).await;
    }

    /// An agent that was started for one turn is in it until it ends.
    pub(super) async fn tell_headless(&mut self, senses: &Senses, server: &ServerKey, generation: Generation) {
        for (pane, process) in self.headless.difference(&self.told.clone()) {
            let began = senses.clock.now();
            let seen = Seen::headless((server.clone(), generation), PaneId(*pane), *process, began);
            senses.engine.seen(seen).await;
            self.told.insert((*pane, *process));
        }
    }

    /// What agents write about themselves.
    pub(super) async fn read_files(&mut self, senses: &Senses, home: (&ServerKey, Option<Generation>), to: &Notices) {
        let (server, Some(generation)) = home else { return };
        for pane in std::mem::take(&mut self.filed) {
            self.read_log(senses, server, pane, to).await;
            let at = senses.clock.now();
            match self.files.read(pane, &senses.switchboard, to) {
                None => continue,
                Some(Status::Says { process, event_type, payload }) => {
                    let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
                    let entries = vec![FiledEntry { event_type, payload, at }];
                    senses.engine.filed(Filed { pane, process, entries, logged: false }).await;
                }
                Some(Status::Gone(process)) => {
                    let home = (server.clone(), generation);
                    senses.engine.seen(Seen::file_is_gone(home, PaneId(pane), process, at)).await;
                }
            }
            self.screens.said(pane, Instant::now());
        }
    }

    async fn read_log(&mut self, senses: &Senses, server: &ServerKey, pane: u32, to: &Notices) {
        let (registry, table) = (senses.roster.now(), senses.processes.as_ref());
        let Some(Written { process, entries, more }) =
            self.logs.read(pane, &registry, table, (&senses.switchboard, to))
        else {
            return;
        };
        if more {
            // Nobody is kept waiting for the rest of a long one.
            let _ = to.send(Notice::AgentFile(pane));
        }
        if !entries.is_empty() {
            self.screens.said(pane, Instant::now());
            let pane = PaneKey { server: server.clone(), pane: PaneId(pane) };
            senses.engine.filed(Filed { pane, process, entries, logged: true }).await;
        }
    }

    /// What agents show, all that are due in one question. Says whether the server was asked.
    pub(super) async fn look(
        &mut self,
        senses: &Senses,
        tmux: &TmuxServer,
        server: &ServerKey,
        generation: Generation,
        now: Instant,
    ) -> bool {
        let looks = self.screens.take(now);
        if looks.is_empty() {
            return false;
        }
        let began = senses.clock.now();
        let panes: Vec<u32> = looks.iter().map(|look| look.pane).collect();
        let captures = capture_all(tmux, &panes).await;
        let registry = senses.roster.now();
        for look in looks {
            let capture = captures.iter().find(|c| c.pane == look.pane && c.server_pid == generation.pid);
            let Some(capture) = capture else {
                self.screens.missed(look.pane, Instant::now());
                continue;
            };
            let seen = self.eyes.judge(&registry, (server.clone(), generation), &look, capture, began);
            senses.engine.seen(seen).await;
            // A file that could not be watched, or was not there, may be there by now.
            self.filed.insert(look.pane);
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
