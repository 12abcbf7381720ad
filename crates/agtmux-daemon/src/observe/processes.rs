//! Who lives in a pane, by its processes.

use std::time::{Duration, Instant};

use agtmux_agents::{ProcessFacts, Registry};
use agtmux_core::fleet::{AgentSighting, Foreground, ProcessSighting};
use agtmux_core::ids::{PaneId, ProcessRef};
use agtmux_core::text;
use agtmux_tmux::platform::{PaneProcesses, Process, ProcessTable};

use super::convert;

/// The first look after something changed, and how rare looks become while nothing does.
const SOONEST: Duration = Duration::from_millis(500);
const RAREST: Duration = Duration::from_secs(30);
/// From here on a pane counts as settled: a cheap look comes before the one at its whole tree.
const SETTLED: Duration = Duration::from_secs(8);
/// A pane that keeps writing gets a cheap look this often.
pub(super) const STIR_AGAIN: Duration = Duration::from_millis(300);

/// What was last seen of one pane's processes, and when to look again.
#[derive(Debug)]
pub(super) struct Resident {
    pane: u32,
    pane_pid: u32,
    group: Option<u32>,
    cwd: Option<String>,
    sighting: Option<ProcessSighting>,
    look_at: Instant,
    step: Duration,
    stirred: bool,
    stir_from: Instant,
}

impl Resident {
    pub(super) fn new(pane: u32, pane_pid: u32, now: Instant) -> Self {
        Self {
            pane,
            pane_pid,
            group: None,
            cwd: None,
            sighting: None,
            look_at: now,
            step: SOONEST,
            stirred: false,
            stir_from: now,
        }
    }

    pub(super) fn agent(&self) -> Option<ProcessRef> {
        self.sighting.as_ref()?.agent.as_ref().map(|a| a.process)
    }

    /// Something is known to have changed: the whole tree is due.
    pub(super) fn disturb(&mut self, now: Instant) {
        self.step = SOONEST;
        self.look_at = now;
    }

    /// The pane wrote or read.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// When this pane is worth waking up for. The rest waits for the next tick.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        let look = (self.step < SETTLED).then_some(self.look_at);
        let stir = self.stirred.then_some(self.stir_from);
        look.into_iter().chain(stir).min()
    }

    /// Whether the whole tree has to be looked at. A cheap look tells whether another job has the terminal, or has
    /// moved to another directory. A pane that goes on writing gets the next one at `again`.
    pub(super) fn is_due(&mut self, table: &dyn ProcessTable, now: Instant, again: Instant) -> bool {
        let due = self.look_at <= now;
        let stirred = self.stirred && self.stir_from <= now;
        if due && self.step < SETTLED {
            return true;
        }
        if !due && !stirred {
            return false;
        }
        self.stirred = false;
        self.stir_from = again;
        if due {
            self.step = (self.step * 2).min(RAREST);
            self.look_at = now + self.step;
        }
        let group = table.foreground_pgrp(self.pane_pid);
        let cwd = group.and_then(|g| table.cwd(g)).map(|p| convert::path(&p));
        // A busy pane is not settled: a wrapper may take its time before it starts the agent.
        if stirred && self.step > SETTLED {
            self.step = SETTLED;
            self.look_at = self.look_at.min(now + SETTLED);
        }
        group != self.group || cwd != self.cwd
    }

    fn settle(&mut self, sighting: &ProcessSighting, group: Option<u32>, now: Instant) -> bool {
        let changed = self.sighting.as_ref() != Some(sighting);
        self.step = if changed { SOONEST } else { (self.step * 2).min(RAREST) };
        self.look_at = now + self.step;
        self.group = group;
        self.cwd = sighting.foreground.as_ref().and_then(|f| f.cwd.clone());
        self.sighting = Some(sighting.clone());
        changed
    }
}

/// Looks at the trees of these panes and gives back those in which something is different.
pub(super) fn look(
    table: &dyn ProcessTable,
    registry: &Registry,
    residents: Vec<&mut Resident>,
    now: Instant,
) -> Vec<ProcessSighting> {
    if residents.is_empty() {
        return Vec::new();
    }
    let roots: Vec<u32> = residents.iter().map(|r| r.pane_pid).collect();
    let trees = table.trees(&roots);
    let mut changed = Vec::new();
    for (resident, tree) in residents.into_iter().zip(trees) {
        let group = tree.as_ref().and_then(|t| t.foreground_pgrp);
        let sighting = sight(table, registry, resident, tree);
        if resident.settle(&sighting, group, now) {
            changed.push(sighting);
        }
    }
    changed
}

fn sight(
    table: &dyn ProcessTable,
    registry: &Registry,
    resident: &Resident,
    tree: Option<PaneProcesses>,
) -> ProcessSighting {
    let nobody =
        ProcessSighting { pane: PaneId(resident.pane), pane_pid: resident.pane_pid, foreground: None, agent: None };
    let Some(tree) = tree else { return nobody };
    ProcessSighting { foreground: foreground(table, &tree), agent: agent(registry, &tree), ..nobody }
}

/// The leader of the job that has the terminal, as tmux would name it.
fn foreground(table: &dyn ProcessTable, tree: &PaneProcesses) -> Option<Foreground> {
    let group = tree.foreground_pgrp?;
    let leader =
        tree.processes.iter().find(|p| p.pid == group).or_else(|| tree.processes.iter().find(|p| p.pgrp == group))?;
    let cwd = table.cwd(leader.pid).map(|p| convert::path(&p));
    Some(Foreground { command: command_name(leader), cwd })
}

fn command_name(process: &Process) -> String {
    let first = process.argv.first().map(Vec::as_slice).unwrap_or_default();
    let base = first.rsplit(|b| *b == b'/').next().unwrap_or_default();
    // A login shell has a dash before its name; a process title may have words behind it.
    let base = base.strip_prefix(b"-").unwrap_or(base);
    let base = base.split(|b| *b == b' ').next().unwrap_or_default();
    text::from_bytes(if base.is_empty() { &process.name } else { base })
}

fn agent(registry: &Registry, tree: &PaneProcesses) -> Option<AgentSighting> {
    let facts: Vec<ProcessFacts<'_>> = tree.processes.iter().map(facts).collect();
    let found = registry.identify(&facts, tree.foreground_pgrp)?;
    let process = tree.processes.iter().find(|p| p.pid == found.pid)?;
    Some(AgentSighting {
        agent_type: found.agent_type,
        process: ProcessRef { pid: process.pid, start: process.start },
        suspended: found.suspended,
    })
}

fn facts(process: &Process) -> ProcessFacts<'_> {
    ProcessFacts {
        pid: process.pid,
        ppid: process.ppid,
        pgrp: process.pgrp,
        tpgid: process.tpgid,
        stopped: process.stopped,
        zombie: process.zombie,
        name: &process.name,
        argv: &process.argv,
        exe: process.exe.as_deref(),
    }
}
