//! The agents of one server: their screens, and the files that they keep about themselves.

use std::collections::BTreeSet;
use std::time::Instant;

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_tmux::TmuxServer;

use super::Senses;
use super::files::AgentFiles;
use super::screens::Screens;
use super::seen::Eyes;
use super::switchboard::Notices;
use super::watched::WatchedPanes;
use crate::engine::Filed;

#[derive(Default)]
pub(super) struct Agents {
    screens: Screens,
    eyes: Eyes,
    files: AgentFiles,
    /// Panes whose agents' files may have changed.
    filed: BTreeSet<u32>,
}

impl Agents {
    pub(super) fn follow(&mut self, panes: &WatchedPanes, senses: &Senses, now: Instant) {
        self.screens.follow(panes.agents(), now);
        self.eyes.forget_all_but(|pane| self.screens.holds(pane));
        self.filed.extend(self.files.follow(panes.agents(), senses.registry, senses.processes.as_ref()));
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

    /// Nobody knows who wrote.
    pub(super) fn look_at_all(&mut self, now: Instant) {
        self.screens.look_at_all(now);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at()
    }

    /// What agents write about themselves.
    pub(super) async fn read_files(&mut self, senses: &Senses, server: &ServerKey, to: &Notices) {
        for pane in std::mem::take(&mut self.filed) {
            let Some(status) = self.files.read(pane, &senses.switchboard, to) else { continue };
            let filed = Filed {
                pane: PaneKey { server: server.clone(), pane: PaneId(pane) },
                process: status.process,
                event_type: status.event_type,
                payload: status.payload,
                at: senses.clock.now(),
            };
            senses.engine.filed(filed).await;
            self.screens.said(pane, Instant::now());
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
        let captures = tmux.capture(&panes).await.unwrap_or_default();
        for look in looks {
            let capture = captures.iter().find(|c| c.pane == look.pane && c.server_pid == generation.pid);
            let Some(capture) = capture else {
                self.screens.missed(look.pane, Instant::now());
                continue;
            };
            let seen = self.eyes.judge(senses.registry, (server.clone(), generation), &look, capture, began);
            senses.engine.seen(seen).await;
            // A file that could not be watched, or was not there, may be there by now.
            self.filed.insert(look.pane);
        }
        true
    }
}
