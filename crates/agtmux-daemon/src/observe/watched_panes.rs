//! The watched panes of one server.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agtmux_core::fleet::{PaneProcess, PaneRow};
use agtmux_core::ids::ProcessRef;
use agtmux_core::text;
use agtmux_tmux::platform::ProcessTable;

use super::ObserverContext;
use super::agent_map::FoundAgent;
use super::process_watch::{self, ACTIVITY_INTERVAL, PaneProcessWatch};
use super::reported_agents::{AgentReport, RememberedAgents, ReportedAgent};
use super::signal_router::{HintWatcher, ObserverHint, WatchGuard, WatchSubject};

/// The name of the process table in the health report.
const PROCESS_TABLE: &str = "process_table";

struct WatchedPane {
    pid: u32,
    tty: String,
    _terminal: Option<WatchGuard>,
    _process: Option<WatchGuard>,
    agent: Option<(ProcessRef, Option<WatchGuard>)>,
    processes: PaneProcessWatch,
}

/// The watched panes. A watch starts when a pane is first listed and ends with the pane or its process.
pub(super) struct WatchedPanes {
    context: Arc<ObserverContext>,
    watcher: HintWatcher,
    panes: HashMap<u32, WatchedPane>,
    /// The earliest time at which a pane needs an urgent check. Cached, because there may be a thousand panes and a
    /// hundred wake-ups per second.
    urgent_at: Option<Instant>,
    epoch: Instant,
    /// The agents that the previous daemon knew. Only the first listing uses them.
    remembered: RememberedAgents,
}

impl WatchedPanes {
    pub(super) fn new(
        context: Arc<ObserverContext>,
        watcher: HintWatcher,
        remembered: RememberedAgents,
        now: Instant,
    ) -> Self {
        Self { context, watcher, panes: HashMap::new(), urgent_at: None, epoch: now, remembered }
    }

    /// Updates the watches from a listing.
    pub(super) fn apply_listing(&mut self, rows: &[PaneRow], now: Instant) {
        let table = self.context.processes.as_ref();
        let alive: HashMap<u32, &PaneRow> =
            rows.iter().filter(|r| r.dead.is_none() && r.pid != 0).map(|r| (r.pane.0, r)).collect();
        self.panes.retain(|pane, w| alive.get(pane).is_some_and(|r| r.pid == w.pid && r.tty == w.tty));
        let mut remembered = std::mem::take(&mut self.remembered);
        for (pane, row) in alive {
            let known = remembered.remove(&pane).filter(|(pid, ..)| *pid == row.pid);
            self.panes.entry(pane).or_insert_with(|| {
                let mut watched = watch(pane, row, &self.watcher, table, now);
                watched.processes.reported =
                    known.map(|(_, agent_type, process)| ReportedAgent::known(agent_type, process)).unwrap_or_default();
                watched
            });
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

    /// Notes that the pane wrote or read.
    pub(super) fn note_activity(&mut self, pane: u32) {
        self.update(pane, PaneProcessWatch::note_activity);
    }

    /// Requests a full check of a pane.
    pub(super) fn recheck(&mut self, pane: u32, now: Instant) {
        self.update(pane, |watch| watch.recheck(now));
    }

    /// Whether the processes of every pane were checked.
    pub(super) fn all_checked(&self) -> bool {
        self.panes.values().all(|watched| watched.processes.is_checked())
    }

    /// Notes that an agent reported itself from inside a pane, and requests a full check of the pane.
    pub(super) fn report_agent(&mut self, pane: u32, report: AgentReport, now: Instant) {
        self.update(pane, |watch| {
            watch.reported.report(report);
            watch.recheck(now);
        });
    }

    /// Requests a full check of all panes, because the registry of agents changed.
    pub(super) fn recheck_all(&mut self, now: Instant) {
        self.panes.values_mut().for_each(|watched| watched.processes.recheck(now));
        self.find_urgent();
    }

    /// Notes that the machine slept until now. Right after the wake-up, an agent may seem to be gone, so only panes
    /// with an agent are affected.
    pub(super) fn woke(&mut self, now: Instant) {
        let watches = self.panes.values_mut().map(|watched| &mut watched.processes);
        watches.filter(|watch| watch.agent().is_some()).for_each(|watch| watch.woke(now));
        self.find_urgent();
    }

    fn update(&mut self, pane: u32, how: impl FnOnce(&mut PaneProcessWatch)) {
        let Some(watched) = self.panes.get_mut(&pane) else { return };
        how(&mut watched.processes);
        self.urgent_at = self.urgent_at.into_iter().chain(watched.processes.urgent_at()).min();
    }

    /// When to wake up for a pane whose check cannot wait for the next tick.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        self.urgent_at
    }

    fn find_urgent(&mut self) {
        self.urgent_at = self.panes.values().filter_map(|w| w.processes.urgent_at()).min();
    }

    /// Checks the processes of the panes that are due. Returns the panes in which something changed.
    pub(super) fn check_due(&mut self, now: Instant) -> Vec<PaneProcess> {
        let (table, again) = (self.context.processes.as_ref(), self.next_round(now));
        let mut due: Vec<&mut PaneProcessWatch> = self.panes.values_mut().map(|w| &mut w.processes).collect();
        due.retain_mut(|watch| watch.is_due(table, now, again));
        let (is_idle, background) = (due.is_empty(), &self.context.background);
        let checked = process_watch::check_panes(table, &self.context.registry.get(), due, now);
        match &checked {
            Err(error) => background.report_fault(PROCESS_TABLE, format!("it cannot be read: {error}")),
            Ok(_) if !is_idle && background.has_fault(PROCESS_TABLE) => background.clear(PROCESS_TABLE),
            Ok(_) => {}
        }
        self.find_urgent();
        checked.unwrap_or_default()
    }

    /// When the next round of checks begins. Panes that keep writing are checked together, once per round.
    fn next_round(&self, now: Instant) -> Instant {
        let rounds = now.saturating_duration_since(self.epoch).as_nanos() / ACTIVITY_INTERVAL.as_nanos() + 1;
        self.epoch + ACTIVITY_INTERVAL * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// The headless agents.
    pub(super) fn headless(&self) -> impl Iterator<Item = (u32, ProcessRef)> {
        let headless = self.panes.iter().filter(|(_, watched)| watched.processes.is_headless());
        headless.filter_map(|(pane, watched)| Some((*pane, watched.processes.agent()?.process)))
    }

    /// The agents with their panes.
    pub(super) fn agents(&self) -> impl Iterator<Item = FoundAgent<'_>> {
        self.panes.iter().filter_map(|(pane, watched)| {
            let agent = watched.processes.agent()?;
            Some((*pane, &agent.agent_type, agent.process))
        })
    }

    /// Watches the processes of new agents, and stops watching the processes of agents that are gone.
    pub(super) fn follow_agents(&mut self) {
        for (pane, watched) in &mut self.panes {
            let agent = watched.processes.agent().map(|agent| agent.process);
            // A watch that failed is tried again, because descriptors may be free by now.
            let is_watched = watched.agent.as_ref().is_none_or(|(_, watch)| watch.is_some());
            if is_watched && agent == watched.agent.as_ref().map(|(process, _)| *process) {
                continue;
            }
            watched.agent = agent.map(|process| {
                let subject = WatchSubject::Process(process.pid, Some(process.start));
                let watch = self.watcher.watch(subject, ObserverHint::AgentEnded(*pane));
                (process, watch.inspect_err(|e| tracing::debug!(%e, "cannot watch an agent's process")).ok())
            });
        }
    }
}

fn watch(pane: u32, row: &PaneRow, watcher: &HintWatcher, table: &dyn ProcessTable, now: Instant) -> WatchedPane {
    let tty = text::to_bytes(&row.tty);
    let tty = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&tty);
    // Without a watch, changes of the pane are still found by periodic checks, only later.
    let terminal = watcher.watch(WatchSubject::Terminal(Path::new(tty)), ObserverHint::Output(pane));
    let terminal = terminal.inspect_err(|error| tracing::debug!(%error, pane, "cannot watch a terminal"));
    let process = WatchSubject::Process(row.pid, table.start_time(row.pid));
    let process = watcher.watch(process, ObserverHint::PaneEnded(pane));
    let process = process.inspect_err(|error| tracing::debug!(%error, pane, "cannot watch a pane's process"));
    WatchedPane {
        pid: row.pid,
        tty: row.tty.clone(),
        _terminal: terminal.ok(),
        _process: process.ok(),
        agent: None,
        processes: PaneProcessWatch::new(pane, row.pid, now),
    }
}
