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
const RAREST: Duration = Duration::from_secs(60);
/// A new job looks like its shell until it becomes the program that it is to run.
const NEW_JOB: Duration = Duration::from_millis(20);
/// From here on a pane counts as settled: a cheap look comes before the one at its whole tree.
const SETTLED: Duration = Duration::from_secs(8);
/// A pane that keeps writing gets a cheap look this often.
pub(super) const STIR_AGAIN: Duration = Duration::from_millis(500);
/// A job that begins after its pane stirred makes no sound: the cheap look is repeated, the first time after this, then
/// ever more rarely until the pane is settled.
const FIRST_ECHO: Duration = Duration::from_millis(10);
/// A pane that was quiet for this long is about to do something new.
const QUIET: Duration = Duration::from_secs(1);

/// What was last seen of one pane's processes, and when to look again.
#[derive(Debug)]
pub(super) struct Resident {
    pane: u32,
    pane_pid: u32,
    group: Option<u32>,
    cwd: Option<String>,
    sighting: Option<ProcessSighting>,
    /// Its agent does one turn, with nobody to talk to.
    headless: bool,
    look_at: Instant,
    step: Duration,
    stirred: bool,
    stir_from: Instant,
    stirred_at: Option<Instant>,
    echo_at: Option<Instant>,
    echo_step: Duration,
}

impl Resident {
    pub(super) fn new(pane: u32, pane_pid: u32, now: Instant) -> Self {
        Self {
            pane,
            pane_pid,
            group: None,
            cwd: None,
            sighting: None,
            headless: false,
            look_at: now,
            step: SOONEST,
            stirred: false,
            stir_from: now,
            stirred_at: None,
            echo_at: None,
            echo_step: FIRST_ECHO,
        }
    }

    pub(super) fn agent(&self) -> Option<&AgentSighting> {
        self.sighting.as_ref()?.agent.as_ref()
    }

    pub(super) fn is_headless(&self) -> bool {
        self.headless
    }

    /// Something is known to have changed: the whole tree is due.
    pub(super) fn disturb(&mut self, now: Instant) {
        self.step = SOONEST;
        self.look_at = now;
        // A shell takes a moment to take its terminal back.
        (self.echo_at, self.echo_step) = (Some(now + FIRST_ECHO), FIRST_ECHO);
    }

    /// The pane wrote or read.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// When this pane is worth waking up for. The rest waits for the next tick.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        let look = (self.step < SETTLED).then_some(self.look_at);
        let stir = self.stirred.then_some(self.stir_from);
        look.into_iter().chain(stir).chain(self.echo_at).min()
    }

    /// Whether the whole tree has to be looked at. A cheap look tells whether another job has the terminal, or has
    /// moved to another directory. A pane that goes on writing gets the next one at `again`.
    pub(super) fn is_due(&mut self, table: &dyn ProcessTable, now: Instant, again: Instant) -> bool {
        let due = self.look_at <= now;
        if due && self.step < SETTLED {
            return true;
        }
        let stirred = self.stirred && self.stir_from <= now;
        let echoes = self.echo_at.is_some_and(|at| at <= now);
        if !due && !stirred && !echoes {
            return false;
        }
        if due {
            self.step = (self.step * 2).min(RAREST);
            self.look_at = now + self.step;
        }
        if stirred {
            self.expect_echoes(now, again);
        } else if echoes {
            self.echo_step *= 2;
            self.echo_at = (self.echo_step < SETTLED).then(|| now + self.echo_step);
        }
        self.looks_different(table)
    }

    fn expect_echoes(&mut self, now: Instant, again: Instant) {
        let was_quiet = self.stirred_at.is_none_or(|at| at + QUIET <= now);
        (self.stirred, self.stir_from, self.stirred_at) = (false, again, Some(now));
        (self.echo_at, self.echo_step) =
            if was_quiet { (Some(now + FIRST_ECHO), FIRST_ECHO) } else { (Some(again), STIR_AGAIN) };
        // A busy pane is not settled: a wrapper may take its time before it starts the agent.
        if self.step > SETTLED {
            self.step = SETTLED;
            self.look_at = self.look_at.min(now + SETTLED);
        }
    }

    fn looks_different(&self, table: &dyn ProcessTable) -> bool {
        let group = table.foreground_pgrp(self.pane_pid);
        let cwd = group.and_then(|g| table.cwd(g)).map(|p| convert::path(&p));
        group != self.group || cwd != self.cwd
    }

    fn settle(&mut self, sighting: &ProcessSighting, group: Option<u32>, now: Instant) -> bool {
        let changed = self.sighting.as_ref() != Some(sighting);
        let new_job = self.sighting.is_some() && self.group != group;
        self.step = match (new_job, changed) {
            (true, _) => NEW_JOB,
            (false, true) => SOONEST,
            (false, false) => (self.step * 2).min(RAREST),
        };
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
        let cwd = |leader: u32| table.cwd(leader).map(|path| convert::path(&path));
        let (sighting, headless) = sighting(registry, (PaneId(resident.pane), resident.pane_pid), tree.as_ref(), cwd);
        resident.headless = headless;
        if resident.settle(&sighting, group, now) {
            changed.push(sighting);
        }
    }
    changed
}

/// Who lives in a pane, by its processes, and whether that has nobody to talk to. `cwd` tells where the leader of the job
/// is that has the terminal.
pub(super) fn sighting(
    registry: &Registry,
    (pane, pane_pid): (PaneId, u32),
    tree: Option<&PaneProcesses>,
    cwd: impl Fn(u32) -> Option<String>,
) -> (ProcessSighting, bool) {
    let nobody = ProcessSighting { pane, pane_pid, foreground: None, agent: None };
    let Some(tree) = tree else { return (nobody, false) };
    let found = agent(registry, tree);
    let headless = found.as_ref().is_some_and(|(_, headless)| *headless);
    let agent = found.map(|(agent, _)| agent);
    (ProcessSighting { foreground: foreground(tree, cwd), agent, ..nobody }, headless)
}

/// The leader of the job that has the terminal, as tmux would name it.
fn foreground(tree: &PaneProcesses, cwd: impl Fn(u32) -> Option<String>) -> Option<Foreground> {
    let group = tree.foreground_pgrp?;
    let leader =
        tree.processes.iter().find(|p| p.pid == group).or_else(|| tree.processes.iter().find(|p| p.pgrp == group))?;
    Some(Foreground { command: command_name(leader), cwd: cwd(leader.pid) })
}

fn command_name(process: &Process) -> String {
    let first = process.argv.first().map(Vec::as_slice).unwrap_or_default();
    let base = first.rsplit(|b| *b == b'/').next().unwrap_or_default();
    // A login shell has a dash before its name; a process title may have words behind it.
    let base = base.strip_prefix(b"-").unwrap_or(base);
    let base = base.split(|b| *b == b' ').next().unwrap_or_default();
    text::from_bytes(if base.is_empty() { &process.name } else { base })
}

/// The agent, and whether it has nobody to talk to.
fn agent(registry: &Registry, tree: &PaneProcesses) -> Option<(AgentSighting, bool)> {
    let facts: Vec<ProcessFacts<'_>> = tree.processes.iter().map(facts).collect();
    let found = registry.identify(&facts, tree.foreground_pgrp)?;
    let process = tree.processes.iter().find(|p| p.pid == found.pid)?;
    let agent = AgentSighting {
        agent_type: found.agent_type,
        process: ProcessRef { pid: process.pid, start: process.start },
        suspended: found.suspended,
    };
    Some((agent, found.headless))
}

/// Who lives in a pane of these processes.
pub(crate) fn resident(registry: &Registry, tree: &PaneProcesses) -> Option<AgentSighting> {
    agent(registry, tree).map(|(agent, _)| agent)
}

pub(crate) fn facts(process: &Process) -> ProcessFacts<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    /// One pane whose foreground job can be changed, and how often it was looked at.
    #[derive(Default)]
    struct Table {
        group: AtomicU32,
        looks: AtomicUsize,
    }

    impl ProcessTable for Table {
        fn foreground_pgrp(&self, _: u32) -> Option<u32> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            Some(self.group.load(Ordering::Relaxed))
        }

        fn start_time(&self, _: u32) -> Option<u64> {
            None
        }

        fn trees(&self, roots: &[u32]) -> Vec<Option<PaneProcesses>> {
            vec![None; roots.len()]
        }

        fn cwd(&self, _: u32) -> Option<PathBuf> {
            None
        }

        fn variable(&self, _: u32, _: &str) -> Option<std::ffi::OsString> {
            None
        }

        fn wakeups(&self, _: u32) -> Option<u64> {
            None
        }

        fn is_stopped(&self, _: u32) -> bool {
            false
        }
    }

    fn settled(now: Instant) -> Resident {
        let far = now + Duration::from_secs(1000);
        Resident { group: Some(0), step: RAREST, look_at: far, ..Resident::new(1, 1, now) }
    }

    /// The milliseconds at which it is looked at, woken only when it asks for it, until it finds something.
    fn looks(
        resident: &mut Resident,
        table: &Table,
        start: Instant,
        mut before: impl FnMut(&mut Resident, u64),
    ) -> Vec<u64> {
        let mut times = Vec::new();
        for ms in 0..20_000 {
            let now = start + Duration::from_millis(ms);
            before(resident, ms);
            if resident.urgent_at().is_none_or(|at| now < at) {
                continue;
            }
            let round = Duration::from_millis(ms / 300 * 300 + 300);
            let (count, due) = (table.looks.load(Ordering::Relaxed), resident.is_due(table, now, start + round));
            if table.looks.load(Ordering::Relaxed) > count {
                times.push(ms);
            }
            if due {
                break;
            }
        }
        times
    }

    #[test]
    fn a_pane_that_stirred_is_looked_at_again_for_a_while() {
        let (table, start) = (Table::default(), Instant::now());
        let times = looks(&mut settled(start), &table, start, |resident, ms| {
            if ms == 100 {
                resident.stir();
            }
        });
        assert_eq!(times, [100, 110, 130, 170, 250, 410, 730, 1370, 2650, 5210, 10_330]);
    }

    #[test]
    fn a_job_that_was_slow_to_start_is_found() {
        let (table, start) = (Table::default(), Instant::now());
        let times = looks(&mut settled(start), &table, start, |resident, ms| match ms {
            100 => resident.stir(),
            900 => table.group.store(7, Ordering::Relaxed),
            _ => {}
        });
        assert_eq!(times.last(), Some(&1370));
    }

    #[test]
    fn a_new_job_is_looked_at_again_although_it_still_looks_like_its_shell() {
        let (start, shell) = (Instant::now(), Some(Foreground { command: "sh".into(), cwd: None }));
        let mut resident = settled(start);
        let sighting = ProcessSighting { pane: PaneId(1), pane_pid: 1, foreground: shell, agent: None };
        resident.settle(&sighting, Some(1), start);
        resident.step = RAREST;
        assert!(!resident.settle(&sighting, Some(2), start), "nothing to tell yet");
        assert_eq!(resident.urgent_at(), Some(start + NEW_JOB));
    }

    #[test]
    fn a_pane_that_keeps_writing_is_looked_at_in_rounds() {
        let (table, start) = (Table::default(), Instant::now());
        let times = looks(&mut settled(start), &table, start, |resident, ms| {
            if ms < 1000 && ms % 100 == 0 {
                resident.stir();
            }
        });
        assert_eq!(times, [0, 10, 30, 70, 150, 300, 600, 900, 1200, 2200, 4200, 8200]);
    }
}
