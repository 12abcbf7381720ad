//! Renders the report for the terminal and for `docs/benchmarks.md`.

use std::fmt::Write;

use super::lag::{ChangeLag, TmuxChange};
use super::list::ListTimes;
use super::load::{BusyCost, IdleCost};
use super::writers::BUSY_PANES;
use crate::harness::met;
use crate::harness::stats::{mebibytes, median, percentile};

#[derive(Debug)]
pub(crate) struct SpineMeasurement {
    pub(crate) panes: usize,
    pub(crate) lists: ListTimes,
    pub(crate) lags: Vec<ChangeLag>,
    pub(crate) idle: Option<IdleCost>,
    pub(crate) busy: Option<BusyCost>,
    pub(crate) busy_calls: Option<f64>,
}

const INTRODUCTION: &str = "\
# Benchmarks

Measured by `make bench`. Each size is a private tmux server with that many panes in windows of ten. Nearly all panes
sleep, two are shells, three are fake agents. Values that are compared were measured alternately in the same run.
Figures are medians. Percentages are of one core.

";

const METHOD: &str = "\
## How it is measured

- **Lists**: wall time of the command, alternating with one `tmux list-panes -a` with 22 fields.
- **CPU**: from the kernel's accounting; the daemon includes its children. *Idle*: a window of 20 s, one minute after the
  last change. *Busy*: up to 20 panes write a line ten times per second. *Naive* is a shell loop that every second lists
  all panes and captures each busy one. For the phase without an observer the daemon is stopped (SIGSTOP); nothing happens
  then that would make tmux run its hooks.
- **Processes**: idle, from the page faults of the daemon's children, which do not change without new children; busy, by
  a `tmux` script that counts its calls, in a separate phase.
- **Changes**: from just before the command for the change to its line from
  `agtmux watch --format jsonl --all`. Commands go through a control client; a program prints the titles; agents end by
  a signal.
";

pub(crate) fn render(all: &[SpineMeasurement], machine: &str) -> String {
    let goals = goals(all);
    let mut out = String::from(INTRODUCTION);
    let _ = writeln!(out, "Machine: {machine}.\n");
    out.push_str("| measured | panes | goal | agtmux | baseline | ratio | |\n|---|---|---|---|---|---|---|\n");
    for goal in &goals {
        out.push_str(&goal.row());
    }
    out.push_str(&missed(&goals));
    out.push_str(&changes(all));
    out.push_str(METHOD);
    out
}

struct GoalRow {
    label: &'static str,
    panes: usize,
    goal: String,
    measured: String,
    baseline: String,
    ratio: String,
    met: Option<bool>,
}

impl GoalRow {
    fn row(&self) -> String {
        let met = met(self.met);
        let Self { label, panes, goal, measured, baseline, ratio, .. } = self;
        format!("| {label} | {panes} | {goal} | {measured} | {baseline} | {ratio} | {met} |\n")
    }
}

fn goals(all: &[SpineMeasurement]) -> Vec<GoalRow> {
    let rows: [fn(&SpineMeasurement) -> Option<GoalRow>; 9] =
        [list_all, list_agents, idle_daemon, busy_daemon, idle_server, busy_server, idle_processes, lag, memory];
    let calls = all.iter().filter_map(busy_processes);
    let mut goals: Vec<GoalRow> = rows.iter().flat_map(|row| all.iter().filter_map(row)).collect();
    goals.extend(calls);
    goals
}

fn list_all(m: &SpineMeasurement) -> Option<GoalRow> {
    Some(list_goal(m, "`list panes --all --json`, p50", m.lists.all))
}

fn list_agents(m: &SpineMeasurement) -> Option<GoalRow> {
    Some(list_goal(m, "`list panes --json`, p50", m.lists.agents))
}

fn list_goal(m: &SpineMeasurement, label: &'static str, took: f64) -> GoalRow {
    let ratio = took / m.lists.tmux;
    let allowed = if m.panes < 100 { 2.0 } else { 1.0 };
    GoalRow {
        label,
        panes: m.panes,
        goal: if m.panes < 100 { "at most 2x of tmux".into() } else { "under 1x of tmux".into() },
        measured: format!("{took:.1} ms"),
        baseline: format!("tmux {:.1} ms", m.lists.tmux),
        ratio: format!("{ratio:.2}x"),
        met: Some(ratio <= allowed),
    }
}

fn idle_daemon(m: &SpineMeasurement) -> Option<GoalRow> {
    let idle = m.idle.as_ref()?;
    Some(cpu_goal(m, "CPU of daemon and children, idle", 0.1, idle.ours.observer, idle.naive.observer))
}

fn busy_daemon(m: &SpineMeasurement) -> Option<GoalRow> {
    let busy = m.busy.as_ref()?;
    Some(cpu_goal(m, "CPU of daemon and children, busy", 0.5, busy.ours.observer, busy.naive.observer))
}

fn cpu_goal(m: &SpineMeasurement, label: &'static str, goal: f64, ours: f64, naive: f64) -> GoalRow {
    GoalRow {
        label,
        panes: m.panes,
        goal: format!("{goal} %"),
        measured: format!("{ours:.2} %"),
        baseline: format!("naive {naive:.2} %"),
        ratio: format!("{:.3}x", ours / naive),
        met: Some(ours <= goal),
    }
}

fn idle_server(m: &SpineMeasurement) -> Option<GoalRow> {
    let idle = m.idle.as_ref()?;
    Some(server_goal(m, "CPU added to the tmux server, idle", 0.0, idle.ours.server, idle.naive.server))
}

fn busy_server(m: &SpineMeasurement) -> Option<GoalRow> {
    let busy = m.busy.as_ref()?;
    Some(server_goal(m, "CPU added to the tmux server, busy", busy.none.server, busy.ours.server, busy.naive.server))
}

fn server_goal(m: &SpineMeasurement, label: &'static str, own: f64, ours: f64, naive: f64) -> GoalRow {
    let (added, naive_added, allowed) = (ours - own, naive - own, (own * 0.05).max(0.2));
    GoalRow {
        label,
        panes: m.panes,
        goal: format!("{allowed:.2} %"),
        measured: format!("{added:+.2} %"),
        baseline: format!("own {own:.2} %, naive {naive_added:+.2} %"),
        ratio: if own > 0.0 { format!("{:.3}x of its own", ours / own) } else { String::new() },
        met: Some(added <= allowed),
    }
}

fn idle_processes(m: &SpineMeasurement) -> Option<GoalRow> {
    let idle = m.idle.as_ref()?;
    Some(GoalRow {
        label: "processes started, idle",
        panes: m.panes,
        goal: "0".into(),
        measured: if idle.spawned { "some".into() } else { "0".into() },
        baseline: "naive 2/s".into(),
        ratio: String::new(),
        met: Some(!idle.spawned),
    })
}

fn busy_processes(m: &SpineMeasurement) -> Option<GoalRow> {
    let calls = m.busy_calls?;
    let naive = BUSY_PANES.min(m.panes) + 2;
    Some(GoalRow {
        label: "processes started, busy",
        panes: m.panes,
        goal: String::new(),
        measured: format!("{calls:.1}/s"),
        baseline: format!("naive up to {naive}/s"),
        ratio: String::new(),
        met: None,
    })
}

fn lag(m: &SpineMeasurement) -> Option<GoalRow> {
    let all: Vec<f64> = m.lags.iter().map(|lag| lag.millis).collect();
    let p95 = percentile(&all, 0.95);
    Some(GoalRow {
        label: "lag from a change to `agtmux watch`, p95",
        panes: m.panes,
        goal: "50 ms".into(),
        measured: format!("{p95:.0} ms"),
        baseline: format!("p50 {:.0} ms, {} changes", median(&all), all.len()),
        ratio: String::new(),
        met: Some(p95 <= 50.0),
    })
}

fn memory(m: &SpineMeasurement) -> Option<GoalRow> {
    let used = mebibytes(m.idle.as_ref()?.memory);
    Some(GoalRow {
        label: "memory of the daemon",
        panes: m.panes,
        goal: "30 MB".into(),
        measured: format!("{used:.1} MB"),
        baseline: String::new(),
        ratio: String::new(),
        met: Some(used <= 30.0),
    })
}

fn missed(goals: &[GoalRow]) -> String {
    let missed: Vec<String> = goals
        .iter()
        .filter(|goal| goal.met == Some(false))
        .map(|goal| format!("- {} with {} panes: {} (goal {})\n", goal.label, goal.panes, goal.measured, goal.goal))
        .collect();
    if missed.is_empty() {
        "\nAll goals are met.\n\n".into()
    } else {
        format!("\nGoals missed:\n\n{}\n", missed.concat())
    }
}

fn changes(all: &[SpineMeasurement]) -> String {
    let mut out = String::from("## Lag from a change to its line, p50 / p95 in ms\n\n| change |");
    for m in all {
        let _ = write!(out, " {} panes |", m.panes);
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(all.len()));
    for change in TmuxChange::ALL {
        let _ = write!(out, "| {} |", change.name());
        for m in all {
            let of_kind: Vec<f64> = m.lags.iter().filter(|l| l.change == change).map(|l| l.millis).collect();
            let _ = write!(out, " {:.0} / {:.0} |", median(&of_kind), percentile(&of_kind, 0.95));
        }
        out.push('\n');
    }
    out.push('\n');
    out
}
