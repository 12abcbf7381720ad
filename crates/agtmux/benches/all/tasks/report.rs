use std::fmt::Write as _;
use std::time::Duration;

use crate::harness::met;
use crate::harness::stats::percentile_ms;

#[derive(Default)]
pub(crate) struct TaskLags {
    pub(crate) exits: Vec<Duration>,
    pub(crate) exits_polled: Vec<Duration>,
    pub(crate) bells: Vec<Duration>,
    pub(crate) bells_polled: Vec<Duration>,
}

const INTRODUCTION: &str = "\
# Benchmarks: from a task to its event

Measured by `make bench`. A task reads from a pipe the order to end or to ring the bell. Each time is from just before
that order to the line of `agtmux task events --follow --json`, so it includes the exit of the shell. The daemon holds a
bell for 40 ms: if the task ends meanwhile, one event reports both. Ten other tasks run at the same time. The poller
checks the same tasks every two seconds, as a harness without a daemon does.

";

/// The goal for p95 in milliseconds.
const GOAL_P95_MS: f64 = 100.0;

impl TaskLags {
    pub(crate) fn render(&self) -> String {
        let build =
            if cfg!(debug_assertions) { "Measured with a debug build on a machine with other load.\n\n" } else { "" };
        let mut out = format!(
            "{INTRODUCTION}{build}| measured | samples | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n"
        );
        let mut row = |name: &str, lags: &[Duration], judged: bool| {
            let (p50, p95) = (percentile_ms(lags, 0.5), percentile_ms(lags, 0.95));
            let goal = if judged { format!("{GOAL_P95_MS} ms") } else { String::new() };
            let met = met(judged.then_some(p95 <= GOAL_P95_MS));
            let _ = writeln!(out, "| {name} | {} | {p50:.1} ms | {p95:.1} ms | {goal} | {met} |", lags.len());
        };
        row("end of a task to its event", &self.exits, true);
        row("bell to its event", &self.bells, true);
        row("end of a task to the poller", &self.exits_polled, false);
        row("bell to the poller", &self.bells_polled, false);
        let ratio = |polled: &[Duration], ours: &[Duration]| percentile_ms(polled, 0.5) / percentile_ms(ours, 0.5);
        let (exits, bells) = (ratio(&self.exits_polled, &self.exits), ratio(&self.bells_polled, &self.bells));
        let _ = writeln!(
            out,
            "\nThe poller takes {exits:.0} times as long to see an end, and {bells:.0} times as long to see a bell."
        );
        out
    }
}
