//! Identifies the agent in a pane by the processes of the pane, and decides when to check these processes.

#[cfg(test)]
mod tests;

use std::io;
use std::time::{Duration, Instant};

use agtmux_agents::{AgentRegistry, ProcessFacts};
use agtmux_core::fleet::{DetectedAgent, ForegroundProcess, PaneProcess};
use agtmux_core::ids::{AgentType, PaneId, ProcessRef};
use agtmux_core::runtime::LaunchOptions;
use agtmux_core::text;
use agtmux_tmux::platform::{PaneProcesses, ProcessInfo, ProcessTable};

use super::convert;
use super::reported_agents::ReportedAgent;

/// The interval between two checks of a pane after a change. While nothing changes, the interval doubles up to
/// `MAX_INTERVAL`.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// The delay before a new foreground job is checked again. Until the job executes its program, it looks like the shell
/// that started it.
const NEW_JOB_DELAY: Duration = Duration::from_millis(20);
/// A pane is settled once the interval between its checks has grown to this value. The process tree of a settled pane
/// is read only if a cheap check finds a change.
const SETTLED_AFTER: Duration = Duration::from_secs(8);
/// How often a pane that writes without a break gets a cheap check.
pub(super) const ACTIVITY_INTERVAL: Duration = Duration::from_millis(500);
/// The delay between input or output of a pane and the first follow-up check. A job can start without output, so more
/// cheap checks follow at growing intervals, until the interval reaches `SETTLED_AFTER`.
const FIRST_FOLLOW_UP: Duration = Duration::from_millis(10);
/// After this much silence, the next input or output starts a new series of follow-up checks.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// For this long after the machine wakes up, an agent does not count as gone or stopped while its process exists. The
/// processes of a machine do not all resume at the same time.
const WAKE_TIME: Duration = Duration::from_secs(5);

/// The last known processes of a pane, and when to check them again.
#[derive(Debug)]
pub(super) struct PaneProcessWatch {
    pane: u32,
    pane_pid: u32,
    foreground_group: Option<u32>,
    sighting: Option<PaneProcess>,
    /// The agent that reported itself by an event, if no manifest recognises it.
    pub(super) reported: ReportedAgent,
    /// Whether the agent is headless, that is, runs one turn without a user.
    headless: bool,
    check_at: Instant,
    check_interval: Duration,
    has_activity: bool,
    activity_check_at: Instant,
    activity_at: Option<Instant>,
    follow_up_at: Option<Instant>,
    follow_up_interval: Duration,
    /// The end of `WAKE_TIME` after the machine woke up. Until then, an agent whose process runs does not count as
    /// gone.
    waking_until: Option<Instant>,
}

impl PaneProcessWatch {
    pub(super) fn new(pane: u32, pane_pid: u32, now: Instant) -> Self {
        Self {
            pane,
            pane_pid,
            foreground_group: None,
            sighting: None,
            reported: ReportedAgent::default(),
            headless: false,
            check_at: now,
            check_interval: MIN_INTERVAL,
            has_activity: false,
            activity_check_at: now,
            activity_at: None,
            follow_up_at: None,
            follow_up_interval: FIRST_FOLLOW_UP,
            waking_until: None,
        }
    }

    /// Notes that the machine has just woken up.
    pub(super) fn woke(&mut self, now: Instant) {
        self.recheck(now);
        self.waking_until = Some(now + WAKE_TIME);
    }

    /// Whether to ignore this result of a check: the machine has just woken up, and the result shows a known agent as
    /// gone or stopped although its process runs.
    fn is_premature(&self, table: &dyn ProcessTable, sighting: &PaneProcess, now: Instant) -> bool {
        let Some(known) = self.agent().filter(|_| self.waking_until.is_some_and(|until| now < until)) else {
            return false;
        };
        let continues = |seen: &DetectedAgent| seen.process == known.process && (!seen.suspended || known.suspended);
        let runs = |process: ProcessInfo| process.start == known.process.start && !process.zombie;
        !sighting.agent.as_ref().is_some_and(continues) && table.process(known.process.pid).is_some_and(runs)
    }

    pub(super) fn agent(&self) -> Option<&DetectedAgent> {
        self.sighting.as_ref()?.agent.as_ref()
    }

    pub(super) fn is_checked(&self) -> bool {
        self.sighting.is_some()
    }

    pub(super) fn is_headless(&self) -> bool {
        self.headless
    }

    /// Requests a full check, because something changed.
    pub(super) fn recheck(&mut self, now: Instant) {
        self.check_interval = MIN_INTERVAL;
        self.check_at = now;
        // Check once more soon, because a shell takes a moment to become the foreground job of its terminal again.
        (self.follow_up_at, self.follow_up_interval) = (Some(now + FIRST_FOLLOW_UP), FIRST_FOLLOW_UP);
    }

    /// Requests a full check after a short delay, because the last check failed.
    fn retry(&mut self, now: Instant) {
        (self.check_interval, self.check_at) = (MIN_INTERVAL, now + MIN_INTERVAL);
    }

    /// Notes that the pane had input or output.
    pub(super) fn note_activity(&mut self) {
        self.has_activity = true;
    }

    /// The time of this pane's next check, if that check cannot wait for the next tick.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        let look = (self.check_interval < SETTLED_AFTER).then_some(self.check_at);
        let stir = self.has_activity.then_some(self.activity_check_at);
        look.into_iter().chain(stir).chain(self.follow_up_at).min()
    }

    /// Whether the process tree of the pane must be read now. For a settled pane, a cheap check decides: it looks for a
    /// new foreground job or a new directory. If the pane keeps writing, the next cheap check is at `again`.
    pub(super) fn is_due(&mut self, table: &dyn ProcessTable, now: Instant, again: Instant) -> bool {
        let due = self.check_at <= now;
        if due && self.check_interval < SETTLED_AFTER {
            return true;
        }
        let active = self.has_activity && self.activity_check_at <= now;
        let echoes = self.follow_up_at.is_some_and(|at| at <= now);
        if !due && !active && !echoes {
            return false;
        }
        if due {
            self.check_interval = (self.check_interval * 2).min(MAX_INTERVAL);
            self.check_at = now + self.check_interval;
        }
        if active {
            self.schedule_follow_ups(now, again);
        } else if echoes {
            self.follow_up_interval *= 2;
            self.follow_up_at = (self.follow_up_interval < SETTLED_AFTER).then(|| now + self.follow_up_interval);
        }
        self.foreground_changed(table)
    }

    fn schedule_follow_ups(&mut self, now: Instant, again: Instant) {
        let was_quiet = self.activity_at.is_none_or(|at| at + QUIET_AFTER <= now);
        (self.has_activity, self.activity_check_at, self.activity_at) = (false, again, Some(now));
        (self.follow_up_at, self.follow_up_interval) =
            if was_quiet { (Some(now + FIRST_FOLLOW_UP), FIRST_FOLLOW_UP) } else { (Some(again), ACTIVITY_INTERVAL) };
        // Limit the check interval of a busy pane, because a wrapper may start the agent after a while.
        if self.check_interval > SETTLED_AFTER {
            self.check_interval = SETTLED_AFTER;
            self.check_at = self.check_at.min(now + SETTLED_AFTER);
        }
    }

    fn foreground_changed(&self, table: &dyn ProcessTable) -> bool {
        let group = table.foreground_pgrp(self.pane_pid);
        let cwd = group.and_then(|g| table.cwd(g)).map(|p| convert::path_text(&p));
        let known = self.sighting.as_ref().and_then(|sighting| sighting.foreground.as_ref()?.cwd.as_ref());
        group != self.foreground_group || cwd.as_ref() != known
    }

    fn apply_sighting(&mut self, sighting: &PaneProcess, group: Option<u32>, now: Instant) -> bool {
        let changed = self.sighting.as_ref() != Some(sighting);
        let new_job = self.sighting.is_some() && self.foreground_group != group;
        self.check_interval = match (new_job, changed) {
            (true, _) => NEW_JOB_DELAY,
            (false, true) => MIN_INTERVAL,
            (false, false) => (self.check_interval * 2).min(MAX_INTERVAL),
        };
        self.check_at = now + self.check_interval;
        self.foreground_group = group;
        self.sighting = Some(sighting.clone());
        changed
    }
}

/// Reads the process trees of these panes. Returns the panes whose foreground job or agent has changed. If the process
/// table cannot be read, returns none, and all panes are checked again soon.
pub(super) fn check_panes(
    table: &dyn ProcessTable,
    registry: &AgentRegistry,
    watches: Vec<&mut PaneProcessWatch>,
    now: Instant,
) -> io::Result<Vec<PaneProcess>> {
    if watches.is_empty() {
        return Ok(Vec::new());
    }
    let roots: Vec<u32> = watches.iter().map(|r| r.pane_pid).collect();
    let trees = match table.trees(&roots) {
        Ok(trees) => trees,
        Err(error) => {
            watches.into_iter().for_each(|watch| watch.retry(now));
            return Err(error);
        }
    };
    let mut changed = Vec::new();
    for (watch, tree) in watches.into_iter().zip(trees) {
        let group = tree.as_ref().and_then(|t| t.foreground_pgrp);
        let cwd = |leader: u32| table.cwd(leader).map(|path| convert::path_text(&path));
        let (mut sighting, headless) = sighting(registry, (PaneId(watch.pane), watch.pane_pid), tree.as_ref(), cwd);
        sighting.agent = sighting.agent.or_else(|| watch.reported.find(registry, tree.as_ref()?));
        if watch.is_premature(table, &sighting, now) {
            watch.check_at = now + MIN_INTERVAL;
            continue;
        }
        watch.headless = headless;
        if watch.apply_sighting(&sighting, group, now) {
            changed.push(sighting);
        }
    }
    Ok(changed)
}

/// Returns the foreground job and the agent of a pane, and whether the agent is headless. `cwd` returns the directory
/// of the process that leads the foreground job.
pub(crate) fn sighting(
    registry: &AgentRegistry,
    (pane, pane_pid): (PaneId, u32),
    tree: Option<&PaneProcesses>,
    cwd: impl Fn(u32) -> Option<String>,
) -> (PaneProcess, bool) {
    let no_agent = PaneProcess { pane, pane_pid, foreground: None, agent: None };
    let Some(tree) = tree else { return (no_agent, false) };
    let found = agent_with_mode(registry, tree);
    let headless = found.as_ref().is_some_and(|(_, headless)| *headless);
    let agent = found.map(|(agent, _)| agent);
    (PaneProcess { foreground: foreground(tree, cwd), agent, ..no_agent }, headless)
}

/// The process that leads the foreground job, with the name that tmux would show.
fn foreground(tree: &PaneProcesses, cwd: impl Fn(u32) -> Option<String>) -> Option<ForegroundProcess> {
    let group = tree.foreground_pgrp?;
    let leader =
        tree.processes.iter().find(|p| p.pid == group).or_else(|| tree.processes.iter().find(|p| p.pgrp == group))?;
    Some(ForegroundProcess { command: command_name(leader), cwd: cwd(leader.pid) })
}

fn command_name(process: &ProcessInfo) -> String {
    let first = process.argv.first().map(Vec::as_slice).unwrap_or_default();
    let base = first.rsplit(|b| *b == b'/').next().unwrap_or_default();
    // A login shell has a dash before its name. A process title may have words after the name.
    let base = base.strip_prefix(b"-").unwrap_or(base);
    let base = base.split(|b| *b == b' ').next().unwrap_or_default();
    text::from_bytes(if base.is_empty() { &process.name } else { base })
}

/// The agent in a process tree, and whether it is headless.
fn agent_with_mode(registry: &AgentRegistry, tree: &PaneProcesses) -> Option<(DetectedAgent, bool)> {
    let facts: Vec<ProcessFacts<'_>> = tree.processes.iter().map(process_facts).collect();
    let found = registry.identify(&facts, tree.foreground_pgrp)?;
    let process = tree.processes.iter().find(|p| p.pid == found.pid)?;
    let agent = DetectedAgent {
        agent_type: found.agent_type.clone(),
        process: ProcessRef { pid: process.pid, start: process.start },
        suspended: found.suspended,
        launch: launch_options(registry, &found.agent_type, process, tree),
    };
    Some((agent, found.headless))
}

/// The options with which the agent in this process was started.
pub(super) fn launch_options(
    registry: &AgentRegistry,
    agent_type: &AgentType,
    process: &ProcessInfo,
    tree: &PaneProcesses,
) -> LaunchOptions {
    let agent = registry.agent(agent_type.as_str());
    let arguments = agent.map(|agent| agent.kept_arguments(&process_facts(process))).unwrap_or_default();
    let is_wrapper = |parent: &ProcessInfo| {
        let is_run = parent.argv.get(1).is_some_and(|word| word == b"run");
        parent.pid == process.ppid && parent.name == b"agtmux" && is_run
    };
    LaunchOptions { wrapped: tree.processes.iter().any(is_wrapper), arguments }
}

/// The agent in a process tree. `known` is the agent that an earlier check found there.
pub(crate) fn agent_in_tree(
    registry: &AgentRegistry,
    tree: &PaneProcesses,
    known: Option<(AgentType, ProcessRef)>,
) -> Option<DetectedAgent> {
    let found = agent_with_mode(registry, tree).map(|(agent, _)| agent);
    found.or_else(|| {
        known.and_then(|(agent_type, process)| ReportedAgent::known(agent_type, process).find(registry, tree))
    })
}

pub(crate) fn process_facts(process: &ProcessInfo) -> ProcessFacts<'_> {
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
