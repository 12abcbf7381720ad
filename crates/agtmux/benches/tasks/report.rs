use std::fmt::Write as _;
use std::time::Duration;

use crate::bench_report;
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

Measured by `make bench`. A task reads from a pipe the order to end or to ring the bell. Each time is from just before
that order to the line of `agtmux task events --follow --json`, so it includes the exit of the shell. The daemon holds a
bell for 40 ms: if the task ends meanwhile, one event reports both. Ten other tasks run at the same time. The poller
checks the same tasks every two seconds, as a harness without a daemon does.

";

/// The goal for p95 in milliseconds.
const GOAL_P95_MS: u64 = 100;

impl TasksReport {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | samples | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n");
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
        let build =
            if cfg!(debug_assertions) { "Measured with a debug build on a machine with other load.\n\n" } else { "" };
        bench_report::write(FILE, &format!("{INTRODUCTION}{build}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
