use std::fmt::Write as _;
use std::time::Duration;

use super::hook::HookCost;
use crate::harness::met;
use crate::harness::stats::{millis, percentile_ms};

const INTRODUCTION: &str = "\
# Benchmarks: from an agent to the list

Measured by `make bench`. A scripted agent calls a hook, or draws the recorded screen of a real agent. Each time is from
just before that action to the line of `agtmux watch` that reports it. It includes the start of the hook process, and for
a screen the time that the daemon waits for the output to settle.

| measured | samples | p50 | p95 | goal (p95) | |
|---|---|---|---|---|---|
";

pub(crate) fn render(hook_lags: &[Duration], screen_lags: &[Duration], cost: &HookCost) -> String {
    let mut out = String::from(INTRODUCTION);
    let mut row = |name: &str, times: &[Duration], rest: String| {
        let (p50, p95) = (percentile_ms(times, 0.5), percentile_ms(times, 0.95));
        let _ = writeln!(out, "| {name} | {} | {p50:.1} ms | {p95:.1} ms | {rest} |", times.len());
    };
    let goal = |lags: &[Duration], goal: f64| format!("{goal} ms | {}", met(Some(percentile_ms(lags, 0.95) <= goal)));
    row("state reported by a hook", hook_lags, goal(hook_lags, 100.0));
    row("state read from the screen", screen_lags, goal(screen_lags, 150.0));
    let cpu = |total: Duration| format!("| {:.1} ms of CPU each", millis(total) / cost.hook.len().max(1) as f64);
    row("`agtmux hook`, wall time", &cost.hook, cpu(cost.hook_cpu));
    row("`true`, wall time", &cost.baseline, cpu(cost.baseline_cpu));
    let ratio = percentile_ms(&cost.hook, 0.5) / percentile_ms(&cost.baseline, 0.5);
    let _ = writeln!(out, "\nA hook takes {ratio:.1} times as long as `true`.");
    out
}
