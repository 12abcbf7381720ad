//! The panes of one server that are being watched.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agtmux_agents::AgentRegistry;
use agtmux_core::fleet::{PaneProcess, PaneRow};
use agtmux_core::ids::{AgentType, ProcessRef};
use agtmux_core::text;
use agtmux_tmux::platform::ProcessTable;

use super::process_watch::{self, ACTIVITY_INTERVAL, PaneProcessWatch};
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard};

struct WatchedPane {
    pid: u32,
    tty: String,
    _terminal: Option<WatchGuard>,
    _process: Option<WatchGuard>,
    agent: Option<(ProcessRef, Option<WatchGuard>)>,
    processes: PaneProcessWatch,
}

/// Watches begin when a pane is first listed and end with it, or when another process lives in it.
pub(super) struct WatchedPanes {
    panes: HashMap<u32, WatchedPane>,
    /// When a pane is worth waking up for. It is kept because there may be a thousand panes and a hundred wake-ups a
    /// second.
    urgent_at: Option<Instant>,
    epoch: Instant,
}

impl WatchedPanes {
    pub(super) fn new(now: Instant) -> Self {
        Self { panes: HashMap::new(), urgent_at: None, epoch: now }
    }

    /// Follows a listing.
    pub(super) fn apply_listing(
        &mut self,
        rows: &[PaneRow],
        board: &Arc<SignalRouter>,
        table: &dyn ProcessTable,
        to: &HintSender,
        now: Instant,
    ) {
        let alive: HashMap<u32, &PaneRow> =
            rows.iter().filter(|r| r.dead.is_none() && r.pid != 0).map(|r| (r.pane.0, r)).collect();
        self.panes.retain(|pane, w| alive.get(pane).is_some_and(|r| r.pid == w.pid && r.tty == w.tty));
        for (pane, row) in alive {
            self.panes.entry(pane).or_insert_with(|| watch(pane, row, board, table, to, now));
        }
        self.find_urgent();
    }

    pub(super) fn clear(&mut self) {
        self.panes.clear();
        self.urgent_at = None;
    }

    pub(super) fn count(&self) -> usize {
        self.panes.len()
    }

    /// The pane wrote or read.
    pub(super) fn note_activity(&mut self, pane: u32) {
        self.update(pane, PaneProcessWatch::note_activity);
    }

    /// Something is known to have changed.
    pub(super) fn recheck(&mut self, pane: u32, now: Instant) {
        self.update(pane, |resident| resident.recheck(now));
    }

    /// Whoever lives there may count as somebody else now.
    pub(super) fn recheck_all(&mut self, now: Instant) {
        self.panes.values_mut().for_each(|watched| watched.processes.recheck(now));
        self.find_urgent();
    }

    fn update(&mut self, pane: u32, how: impl FnOnce(&mut PaneProcessWatch)) {
        let Some(watched) = self.panes.get_mut(&pane) else { return };
        how(&mut watched.processes);
        self.urgent_at = self.urgent_at.into_iter().chain(watched.processes.urgent_at()).min();
    }

    /// When a pane is worth waking up for. The others wait for the next tick.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        self.urgent_at
    }

    fn find_urgent(&mut self) {
        self.urgent_at = self.panes.values().filter_map(|w| w.processes.urgent_at()).min();
    }

    /// Looks at the panes that are due and gives back those in which something is different.
    pub(super) fn check_due(
        &mut self,
        table: &dyn ProcessTable,
        registry: &AgentRegistry,
        now: Instant,
    ) -> Vec<PaneProcess> {
        let again = self.next_round(now);
        let mut due: Vec<&mut PaneProcessWatch> = self.panes.values_mut().map(|w| &mut w.processes).collect();
        due.retain_mut(|resident| resident.is_due(table, now, again));
        let changed = process_watch::check_panes(table, registry, due, now);
        self.find_urgent();
        changed
    }

    /// Panes that keep writing are looked at together.
    fn next_round(&self, now: Instant) -> Instant {
        let rounds = now.saturating_duration_since(self.epoch).as_nanos() / ACTIVITY_INTERVAL.as_nanos() + 1;
        self.epoch + ACTIVITY_INTERVAL * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// The agents that work for as long as they live.
    pub(super) fn headless(&self) -> impl Iterator<Item = (u32, ProcessRef)> {
        let headless = self.panes.iter().filter(|(_, watched)| watched.processes.is_headless());
        headless.filter_map(|(pane, watched)| Some((*pane, watched.processes.agent()?.process)))
    }

    /// The agents that were found, each with its pane.
    pub(super) fn agents(&self) -> impl Iterator<Item = (u32, &AgentType, ProcessRef)> {
        self.panes.iter().filter_map(|(pane, watched)| {
            let agent = watched.processes.agent()?;
            Some((*pane, &agent.agent_type, agent.process))
        })
    }

    /// Watches the agents that were found, and no longer those that went.
    pub(super) fn follow_agents(&mut self, board: &Arc<SignalRouter>, to: &HintSender) {
        for (pane, watched) in &mut self.panes {
            let agent = watched.processes.agent().map(|agent| agent.process);
            if agent == watched.agent.as_ref().map(|(process, _)| *process) {
                continue;
            }
            watched.agent = agent.map(|process| {
                let watch = board.watch_process(process.pid, Some(process.start), to, ObserverHint::AgentEnded(*pane));
                (process, watch.inspect_err(|e| tracing::debug!(%e, "an agent's process is not watched")).ok())
            });
        }
    }
}

fn watch(
    pane: u32,
    row: &PaneRow,
    board: &Arc<SignalRouter>,
    table: &dyn ProcessTable,
    to: &HintSender,
    now: Instant,
) -> WatchedPane {
    let tty = text::to_bytes(&row.tty);
    let tty = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&tty);
    // Without a watch the pane is still seen by the looks that come anyway, only later.
    let terminal = board.watch_terminal(Path::new(tty), to, ObserverHint::Output(pane));
    let terminal = terminal.inspect_err(|error| tracing::debug!(%error, pane, "a terminal is not watched"));
    let process = board.watch_process(row.pid, table.start_time(row.pid), to, ObserverHint::PaneEnded(pane));
    let process = process.inspect_err(|error| tracing::debug!(%error, pane, "a pane's process is not watched"));
    WatchedPane {
        pid: row.pid,
        tty: row.tty.clone(),
        _terminal: terminal.ok(),
        _process: process.ok(),
        agent: None,
        processes: PaneProcessWatch::new(pane, row.pid, now),
    }
}
