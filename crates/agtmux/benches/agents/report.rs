use std::fmt::Write as _;
use std::time::Duration;

use crate::bench_report;
use crate::hook::HookCost;
use crate::stats::percentile_of as percentile;

pub(crate) struct AgentsReport {
    pub(crate) hook_lags: Vec<Duration>,
    pub(crate) screen_lags: Vec<Duration>,
    pub(crate) cost: HookCost,
}

const FILE: &str = "benchmarks-agents.md";

const INTRODUCTION: &str = "\
# Benchmarks: from an agent to the list

Measured by `make bench`. A scripted agent calls a hook, or draws the recorded screen of a real agent. Each time is from
just before that action to the line of `agtmux watch` that reports it. It includes the start of the hook process, and for
a screen the time that the daemon waits for the output to settle.

";

impl AgentsReport {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | samples | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n");
        let mut lag = |name: &str, lags: &[Duration], goal: u64| {
            let met = if percentile(lags, 95) <= Duration::from_millis(goal) { "met" } else { "**missed**" };
            let (p50, p95) = (ms(percentile(lags, 50)), ms(percentile(lags, 95)));
            let _ = writeln!(table, "| {name} | {} | {p50} | {p95} | {goal} ms | {met} |", lags.len());
        };
        lag("state reported by a hook", &self.hook_lags, 100);
        lag("state read from the screen", &self.screen_lags, 500);
        let cost = &self.cost;
        let times = u32::try_from(cost.hook.len().max(1)).unwrap_or(1);
        let mut wall = |name: &str, walls: &[Duration], cpu: Duration| {
            let (p50, p95) = (ms(percentile(walls, 50)), ms(percentile(walls, 95)));
            let _ = writeln!(table, "| {name} | {} | {p50} | {p95} | | {} of CPU each |", walls.len(), ms(cpu / times));
        };
        wall("`agtmux hook`, wall time", &cost.hook, cost.hook_cpu);
        wall("`true`, wall time", &cost.baseline, cost.baseline_cpu);
        let ratio = percentile(&cost.hook, 50).as_secs_f64() / percentile(&cost.baseline, 50).as_secs_f64();
        let _ = writeln!(table, "\nA hook takes {ratio:.1} times as long as `true`.");
        table
    }

    pub(crate) fn write(&self) {
        bench_report::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
