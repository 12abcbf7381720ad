use std::fmt::Write as _;
use std::time::Duration;

use crate::hook::HookCost;
use crate::paper;
use crate::stats::percentile_of as percentile;

pub(crate) struct AgentsReport {
    pub(crate) hook_lags: Vec<Duration>,
    pub(crate) screen_lags: Vec<Duration>,
    pub(crate) cost: HookCost,
}

const FILE: &str = "benchmarks-agents.md";

const INTRODUCTION: &str = "\
# Benchmarks: from an agent to the list

What `make bench` measured. The agent is a stand-in that does what it is told: call a hook, or draw a screen that a real
agent drew. Each time is from just before that to the line of `agtmux watch` that tells of it, so it includes the start of
the hook's process, and for a screen the quiet moment that is waited for.

";

impl AgentsReport {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | times | p50 | p95 | goal (p95) | |\n|---|---|---|---|---|---|\n");
        let mut lag = |name: &str, lags: &[Duration], goal: u64| {
            let met = if percentile(lags, 95) <= Duration::from_millis(goal) { "met" } else { "**missed**" };
            let (p50, p95) = (ms(percentile(lags, 50)), ms(percentile(lags, 95)));
            let _ = writeln!(table, "| {name} | {} | {p50} | {p95} | {goal} ms | {met} |", lags.len());
        };
        lag("told by a hook", &self.hook_lags, 100);
        lag("seen on the screen", &self.screen_lags, 500);
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
        paper::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
