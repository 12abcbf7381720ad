use super::*;
use agtmux_core::ids::AgentType;
use agtmux_core::runtime::LaunchOptions;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A process table with one pane. It counts the cheap checks that are made.
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

    fn trees(&self, roots: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>> {
        Ok(vec![None; roots.len()])
    }

    fn is_stopped(&self, _: u32) -> bool {
        false
    }
}

fn settled(now: Instant) -> PaneProcessWatch {
    let far = now + Duration::from_secs(1000);
    PaneProcessWatch {
        foreground_group: Some(0),
        check_interval: MAX_INTERVAL,
        check_at: far,
        ..PaneProcessWatch::new(1, 1, now)
    }
}

/// Runs checks at the times that the watch requests, until a check finds a change. Returns the times of the cheap
/// checks in milliseconds.
fn looks(
    watch: &mut PaneProcessWatch,
    table: &Table,
    start: Instant,
    mut before: impl FnMut(&mut PaneProcessWatch, u64),
) -> Vec<u64> {
    let mut times = Vec::new();
    for ms in 0..20_000 {
        let now = start + Duration::from_millis(ms);
        before(watch, ms);
        if watch.urgent_at().is_none_or(|at| now < at) {
            continue;
        }
        let round = Duration::from_millis(ms / 300 * 300 + 300);
        let (count, due) = (table.looks.load(Ordering::Relaxed), watch.is_due(table, now, start + round));
        if table.looks.load(Ordering::Relaxed) > count {
            times.push(ms);
        }
        if due {
            break;
        }
    }
    times
}

/// A process table that contains exactly one process.
struct OneProcess(ProcessRef);

impl ProcessTable for OneProcess {
    fn foreground_pgrp(&self, _: u32) -> Option<u32> {
        None
    }

    fn start_time(&self, pid: u32) -> Option<u64> {
        (pid == self.0.pid).then_some(self.0.start)
    }

    fn trees(&self, roots: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>> {
        let process = ProcessInfo {
            pid: self.0.pid,
            ppid: 1,
            pgrp: self.0.pid,
            tpgid: None,
            start: self.0.start,
            stopped: false,
            zombie: false,
            name: Vec::new(),
            argv: Vec::new(),
            exe: None,
        };
        let tree = |root: &u32| {
            (*root == self.0.pid).then(|| PaneProcesses { processes: vec![process.clone()], foreground_pgrp: None })
        };
        Ok(roots.iter().map(tree).collect())
    }

    fn is_stopped(&self, _: u32) -> bool {
        false
    }
}

#[test]
fn an_agent_that_still_runs_is_not_gone_directly_after_a_sleep() {
    let (start, process) = (Instant::now(), ProcessRef { pid: 7, start: 1 });
    let agent = DetectedAgent {
        agent_type: AgentType::new("claude"),
        process,
        suspended: false,
        launch: LaunchOptions::default(),
    };
    let with = |agent| PaneProcess { pane: PaneId(1), pane_pid: 1, foreground: None, agent };
    let stopped = with(Some(DetectedAgent { suspended: true, ..agent.clone() }));
    let mut watch = settled(start);
    watch.apply_sighting(&with(Some(agent.clone())), Some(1), start);
    let (alive, dead) = (OneProcess(process), OneProcess(ProcessRef { pid: 7, start: 2 }));
    assert!(!watch.is_premature(&alive, &with(None), start), "no sleep");
    watch.woke(start);
    for sighting in [with(None), stopped] {
        assert!(watch.is_premature(&alive, &sighting, start));
        assert!(!watch.is_premature(&dead, &sighting, start), "its process has ended");
        assert!(!watch.is_premature(&alive, &sighting, start + WAKE_TIME), "the machine is awake for a while");
    }
    assert!(!watch.is_premature(&alive, &with(Some(agent)), start), "the agent is found");
}

/// A process table that cannot be read.
struct UnreadableTable;

impl ProcessTable for UnreadableTable {
    fn foreground_pgrp(&self, _: u32) -> Option<u32> {
        None
    }

    fn start_time(&self, _: u32) -> Option<u64> {
        None
    }

    fn trees(&self, _: &[u32]) -> io::Result<Vec<Option<PaneProcesses>>> {
        Err(io::Error::other("too many open files"))
    }

    fn is_stopped(&self, _: u32) -> bool {
        false
    }
}

#[test]
fn an_agent_stays_while_the_process_table_cannot_be_read() {
    let (start, registry) = (Instant::now(), AgentRegistry::builtin());
    let agent = DetectedAgent {
        agent_type: AgentType::new("claude"),
        process: ProcessRef { pid: 7, start: 1 },
        suspended: false,
        launch: LaunchOptions::default(),
    };
    let mut watch = settled(start);
    let sighting = PaneProcess { pane: PaneId(1), pane_pid: 1, foreground: None, agent: Some(agent.clone()) };
    watch.apply_sighting(&sighting, Some(1), start);
    assert!(check_panes(&UnreadableTable, registry, vec![&mut watch], start).is_err());
    assert_eq!(watch.agent(), Some(&agent));
    assert_eq!(watch.urgent_at(), Some(start + MIN_INTERVAL), "the pane is read again soon");
    let changed = check_panes(&Table::default(), registry, vec![&mut watch], start).expect("readable");
    assert_eq!(changed.len(), 1, "a table that was read shows the end of the agent");
}

#[test]
fn activity_is_followed_by_checks_at_growing_intervals() {
    let (table, start) = (Table::default(), Instant::now());
    let times = looks(&mut settled(start), &table, start, |watch, ms| {
        if ms == 100 {
            watch.note_activity();
        }
    });
    assert_eq!(times, [100, 110, 130, 170, 250, 410, 730, 1370, 2650, 5210, 10_330]);
}

#[test]
fn a_job_that_starts_late_is_found() {
    let (table, start) = (Table::default(), Instant::now());
    let times = looks(&mut settled(start), &table, start, |watch, ms| match ms {
        100 => watch.note_activity(),
        900 => table.group.store(7, Ordering::Relaxed),
        _ => {}
    });
    assert_eq!(times.last(), Some(&1370));
}

#[test]
fn a_new_job_is_checked_again_while_it_looks_like_its_shell() {
    let (start, shell) = (Instant::now(), Some(ForegroundProcess { command: "sh".into(), cwd: None }));
    let mut watch = settled(start);
    let sighting = PaneProcess { pane: PaneId(1), pane_pid: 1, foreground: shell, agent: None };
    watch.apply_sighting(&sighting, Some(1), start);
    watch.check_interval = MAX_INTERVAL;
    assert!(!watch.apply_sighting(&sighting, Some(2), start), "nothing to report yet");
    assert_eq!(watch.urgent_at(), Some(start + NEW_JOB_DELAY));
}

#[test]
fn a_pane_that_keeps_writing_is_checked_in_rounds() {
    let (table, start) = (Table::default(), Instant::now());
    let times = looks(&mut settled(start), &table, start, |watch, ms| {
        if ms < 1000 && ms % 100 == 0 {
            watch.note_activity();
        }
    });
    assert_eq!(times, [0, 10, 30, 70, 150, 300, 600, 900, 1200, 2200, 4200, 8200]);
}
