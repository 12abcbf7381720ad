use std::fmt::Write as _;
use std::time::Duration;

use crate::paper;
use crate::stats::percentile_of as percentile;

#[derive(Default)]
pub(crate) struct TasksReport {
    pub(crate) exits: Vec<Duration>,
    pub(crate) exits_polled: Vec<Duration>,
    pub(crate) bells: Vec<Duration>,
    pub(crate) bells_polled: Vec<Duration>,
}

const FILE: &str = "benchmarks-tasks.md";

const INTRODUCTION: &str = "\
# Benchmarks: from a task to its event

What `make bench` measured. A task is told through a pipe to end, or to ring. Each time is from just before that to the line of
`agtmux task events --follow --json` that tells of it, so it includes the end of the shell. A bell is held back for 40 ms on purpose: if the
task ends meanwhile, both are told in one sentence. Ten other tasks run beside it. The poller asks tmux every two seconds,
as a harness does that has no daemon, and sees the same tasks.

";

/// What p95 should not exceed, in milliseconds.
const GOAL_P95_MS: u64 = 100;

impl TasksReport {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | times | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n");
        let mut row = |name: &str, lags: &[Duration], judged: bool| {
            let (p50, p95) = (percentile(lags, 50), percentile(lags, 95));
            let met = if p95 <= Duration::from_millis(GOAL_P95_MS) { "met" } else { "**missed**" };
            let (goal, met) = if judged { (format!("{GOAL_P95_MS} ms"), met) } else { (String::new(), "") };
            let _ = writeln!(table, "| {name} | {} | {} | {} | {goal} | {met} |", lags.len(), ms(p50), ms(p95));
        };
        row("end of a task to its event", &self.exits, true);
        row("bell to its event", &self.bells, true);
        row("end of a task to the poller", &self.exits_polled, false);
        row("bell to the poller", &self.bells_polled, false);
        let ratio = |polled: &[Duration], ours: &[Duration]| {
            percentile(polled, 50).as_secs_f64() / percentile(ours, 50).as_secs_f64()
        };
        let (exits, bells) = (ratio(&self.exits_polled, &self.exits), ratio(&self.bells_polled, &self.bells));
        let _ = writeln!(
            table,
            "\nThe poller takes {exits:.0} times as long to see an end, and {bells:.0} times as long to see a bell."
        );
        table
    }

    pub(crate) fn write(&self) {
        let build = if cfg!(debug_assertions) {
            "This was a debug build, on a machine that was busy with others.\n\n"
        } else {
            ""
        };
        paper::write(FILE, &format!("{INTRODUCTION}{build}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
