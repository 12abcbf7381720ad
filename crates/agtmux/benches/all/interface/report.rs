use std::fmt::Write as _;
use std::time::Duration;

use crate::harness::met;
use crate::harness::stats::percentile_ms;

pub(crate) struct InterfaceMeasurement {
    pub(crate) starts: Vec<Duration>,
    pub(crate) keys_at_rest: Vec<Duration>,
    pub(crate) keys_busy: Vec<Duration>,
    pub(crate) choose_tree: Vec<Duration>,
    pub(crate) cat: Vec<Duration>,
    /// What the interface wrote at rest.
    pub(crate) idle_bytes: usize,
    /// In percent of one core.
    pub(crate) idle_cpu: f64,
    pub(crate) busy_cpu: f64,
    /// Changes per second.
    pub(crate) rate: f64,
}

const INTRODUCTION: &str = "\
# Benchmarks: the terminal interface

Measured by `make bench`, on a pseudo terminal with 120 columns and 40 rows, with 1,000 panes that each run an agent.

- **Key to redraw**: from just before `j` or `k` is written to the terminal until the program has written the row that is
  selected then. During changes, 50 agents begin and end turns, 50 changes a second in all.
- **Start**: from the start of the process to a screen with agents. The daemon runs already.
- **At rest**: no agent changes, and all are in their states for more than a minute.
- `cat` echoes the same keys on the same kind of terminal. `choose-tree` is the list of panes of tmux itself, with the same
  panes, on the same server, during the same changes.

";

const GOAL_KEY: f64 = 50.0;
const GOAL_START: f64 = 100.0;
const GOAL_BUSY_CPU: f64 = 10.0;
/// What rounds to 0.0 %.
const GOAL_IDLE_CPU: f64 = 0.05;

pub(crate) fn render(all: &InterfaceMeasurement, machine: &str) -> String {
    let mut out = format!(
        "{INTRODUCTION}{machine}\n\n| measured | samples | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n"
    );
    let mut row = |name: &str, times: &[Duration], goal: Option<f64>| {
        let (p50, p95) = (percentile_ms(times, 0.5), percentile_ms(times, 0.95));
        let wanted = goal.map(|goal| format!("{goal} ms")).unwrap_or_default();
        let verdict = goal.map(|goal| met(Some(p95 < goal)).to_string()).unwrap_or_default();
        let _ = writeln!(out, "| {name} | {} | {p50:.1} ms | {p95:.1} ms | {wanted} | {verdict} |", times.len());
    };
    row("key to redraw, at rest", &all.keys_at_rest, Some(GOAL_KEY));
    row("key to redraw, during changes", &all.keys_busy, Some(GOAL_KEY));
    row("`choose-tree`, during changes", &all.choose_tree, None);
    row("`cat`", &all.cat, None);
    row("start to first screen", &all.starts, Some(GOAL_START));
    let mut line = |text: String| {
        let _ = write!(out, "\n- {text}");
    };
    let (busy, rate) = (all.busy_cpu, all.rate);
    line(format!(
        "CPU during {rate:.0} changes a second: {busy:.1} % of one core (goal: below {GOAL_BUSY_CPU} %: {})",
        met(Some(busy < GOAL_BUSY_CPU))
    ));
    let idle = all.idle_cpu;
    line(format!("CPU at rest: {idle:.2} % of one core (goal: 0.0 %: {})", met(Some(idle < GOAL_IDLE_CPU))));
    let bytes = all.idle_bytes;
    line(format!("Bytes written to the terminal at rest: {bytes} (goal: 0: {})", met(Some(bytes == 0))));
    out.push('\n');
    out
}
