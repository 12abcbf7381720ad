//! Measures agents on this host and on three hosts behind a real sshd:
//! - the time from an agent's action to a line of `agtmux watch` on the hub, with 60 panes and 10 events per second,
//!   also during the outage of one host;
//! - the time until the outage is detected;
//! - the cost of 20 idle targets.

mod bench_host;
mod idle;
mod outage;
mod report;
mod setup;

use std::time::Duration;

use agtmux_testkit::hosts_unavailable_reason;
use report::{HostLags, OutageResults, SshReport};
use setup::SshBench;

use crate::harness::BenchRun;

/// How many rounds and targets are measured, and how long the idle phase lasts.
pub(crate) struct SshBenchPlan {
    rounds: usize,
    idle: Duration,
    targets: usize,
    /// The number of outages of each kind.
    outages: u32,
    /// The number of rounds that are measured on the other hosts during the last outage of each kind.
    outage_rounds: usize,
    /// The number of lists per measurement.
    lists: usize,
}

impl SshBenchPlan {
    const FULL: Self =
        Self { rounds: 25, idle: Duration::from_secs(30), targets: 20, outages: 3, outage_rounds: 12, lists: 50 };
    const QUICK: Self =
        Self { rounds: 2, idle: Duration::from_secs(4), targets: 4, outages: 1, outage_rounds: 2, lists: 5 };
}

pub(crate) fn run(run: &BenchRun) {
    if let Some(why) = hosts_unavailable_reason() {
        return eprintln!("skipped: {why}");
    }
    let plan = run.plan(SshBenchPlan::FULL, SshBenchPlan::QUICK);
    let bench = SshBench::build();
    let (lags, outage_results) = measure_lags(&bench, &plan);
    drop(bench);
    eprintln!("{} idle targets", plan.targets);
    let idle = [false, true].map(|agentless| idle::measure(&plan, agentless));
    run.finish("benchmarks-ssh.md", &SshReport { lags, outage_results, idle }.render());
}

fn measure_lags(bench: &SshBench, plan: &SshBenchPlan) -> (Vec<HostLags>, OutageResults) {
    let _load = bench.start_load();
    let mut all = Vec::new();
    for host in &bench.bench_hosts {
        eprintln!("{}", host.label);
        let hook_rounds = if host.has_agtmux { plan.rounds } else { 0 };
        let hook_lags = host.agent.measure_hook_lags(&bench.lines, hook_rounds);
        let screen_lags = host.agent.measure_screen_lags(&bench.lines, plan.rounds);
        all.push(HostLags { label: host.label, target: host.target, hook_lags, screen_lags });
    }
    let lists_before = outage::measure_lists(bench, plan);
    (all, OutageResults { lists_before, outages: outage::measure(bench, plan) })
}
