//! The panes of one server that are being watched.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agtmux_core::fleet::PaneRow;
use agtmux_core::ids::ProcessRef;
use agtmux_core::text;
use agtmux_tmux::platform::ProcessTable;

use super::processes::Resident;
use super::switchboard::{Notice, Notices, Switchboard, Watch};

struct Watched {
    pid: u32,
    tty: String,
    _terminal: Option<Watch>,
    _process: Option<Watch>,
    agent: Option<(ProcessRef, Option<Watch>)>,
    resident: Resident,
}

/// Watches begin when a pane is first listed and end with it, or when another process lives in it.
#[derive(Default)]
pub(super) struct WatchedPanes(HashMap<u32, Watched>);

impl WatchedPanes {
    /// Follows a listing.
    pub(super) fn follow(
        &mut self,
        rows: &[PaneRow],
        board: &Arc<Switchboard>,
        table: &dyn ProcessTable,
        to: &Notices,
        now: Instant,
    ) {
        let alive: HashMap<u32, &PaneRow> =
            rows.iter().filter(|r| r.dead.is_none() && r.pid != 0).map(|r| (r.pane.0, r)).collect();
        self.0.retain(|pane, w| alive.get(pane).is_some_and(|r| r.pid == w.pid && r.tty == w.tty));
        for (pane, row) in alive {
            self.0.entry(pane).or_insert_with(|| watch(pane, row, board, table, to, now));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn resident(&mut self, pane: u32) -> Option<&mut Resident> {
        self.0.get_mut(&pane).map(|w| &mut w.resident)
    }

    pub(super) fn urgent_at(&self) -> Option<Instant> {
        self.0.values().filter_map(|w| w.resident.urgent_at()).min()
    }

    /// The panes whose process trees are due for a look.
    pub(super) fn due(&mut self, table: &dyn ProcessTable, now: Instant) -> Vec<&mut Resident> {
        let mut residents: Vec<&mut Resident> = self.0.values_mut().map(|w| &mut w.resident).collect();
        residents.retain_mut(|resident| resident.is_due(table, now));
        residents
    }

    /// Watches the agents that were found, and no longer those that went.
    pub(super) fn follow_agents(&mut self, board: &Arc<Switchboard>, to: &Notices) {
        for (pane, watched) in &mut self.0 {
            let agent = watched.resident.agent();
            if agent == watched.agent.as_ref().map(|(process, _)| *process) {
                continue;
            }
            watched.agent = agent.map(|process| {
                let watch = board.process(process.pid, Some(process.start), to, Notice::AgentEnded(*pane));
                (process, watch.inspect_err(|e| tracing::debug!(%e, "an agent's process is not watched")).ok())
            });
        }
    }
}

fn watch(
    pane: u32,
    row: &PaneRow,
    board: &Arc<Switchboard>,
    table: &dyn ProcessTable,
    to: &Notices,
    now: Instant,
) -> Watched {
    let tty = text::to_bytes(&row.tty);
    let tty = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&tty);
    // Without a watch the pane is still seen by the looks that come anyway, only later.
    let terminal = board.terminal(Path::new(tty), to, Notice::Output(pane));
    let terminal = terminal.inspect_err(|error| tracing::debug!(%error, pane, "a terminal is not watched"));
    let process = board.process(row.pid, table.start_time(row.pid), to, Notice::PaneEnded(pane));
    let process = process.inspect_err(|error| tracing::debug!(%error, pane, "a pane's process is not watched"));
    Watched {
        pid: row.pid,
        tty: row.tty.clone(),
        _terminal: terminal.ok(),
        _process: process.ok(),
        agent: None,
        resident: Resident::new(pane, row.pid, now),
    }
}
