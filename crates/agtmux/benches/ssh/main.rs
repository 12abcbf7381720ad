//! Measures agents on three hosts behind a real sshd and on this host: the time from an agent's action to a line of
//! `agtmux watch` on the hub, with 60 panes and 10 events per second, also during the outage of one host; the time
//! until the outage is detected; and the cost of 20 idle targets.
//!
//! `cargo bench -p agtmux --bench ssh` writes `docs/benchmarks-ssh.md`; `-- --quick` only prints.

mod bench_host;
#[path = "../support/bench_report.rs"]
mod bench_report;
#[path = "../load/connection.rs"]
#[allow(dead_code, reason = "this benchmark only posts events")]
mod connection;
mod idle;
#[path = "../spine/meter.rs"]
#[allow(dead_code, reason = "shared with another benchmark")]
mod meter;
mod outage;
mod report;
mod setup;
#[path = "../support/stats.rs"]
mod stats;

use std::time::Duration;

use agtmux_testkit::hosts_unavailable_reason;
use report::{HostLags, OutageResults, SshReport};
use setup::SshBench;

/// The number of rounds, and the duration of the idle phase.
pub(crate) struct SshBenchPlan {
    pub(crate) rounds: usize,
    pub(crate) idle: Duration,
    pub(crate) targets: usize,
    /// The number of outages of each kind, the number of rounds measured on the other hosts during the last outage, and
    /// the number of lists per measurement.
    pub(crate) outages: u32,
    pub(crate) outage_rounds: usize,
    pub(crate) lists: usize,
}

fn main() {
    if let Some(why) = hosts_unavailable_reason() {
        return eprintln!("SKIPPED: {why}");
    }
    let quick = bench_report::is_quick();
    let plan = if quick {
        SshBenchPlan { rounds: 2, idle: Duration::from_secs(4), targets: 4, outages: 1, outage_rounds: 2, lists: 5 }
    } else {
        SshBenchPlan {
            rounds: 25,
            idle: Duration::from_secs(30),
            targets: 20,
            outages: 3,
            outage_rounds: 12,
            lists: 50,
        }
    };
    let bench = SshBench::build();
    let (lags, outage_results) = measure_lags(&bench, &plan);
    drop(bench);
    eprintln!("{} idle targets", plan.targets);
    let idle = [false, true].map(|agentless| idle::measure(&plan, agentless));
    let report = SshReport { lags, outage_results, idle };
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

fn measure_lags(bench: &SshBench, plan: &SshBenchPlan) -> (Vec<HostLags>, OutageResults) {
    let _load = bench.start_load();
    let mut all = Vec::new();
    for host in &bench.bench_hosts {
        eprintln!("{}", host.label);
        let hook_lags = match host.has_agtmux {
            true => host.measure_lags(
                &bench.lines,
                plan.rounds,
                &["running", "completed"],
                bench_host::BenchHost::send_hook,
            ),
            false => Vec::new(),
        };
        let screen_lags = host.measure_lags(
            &bench.lines,
            plan.rounds,
            &["waiting_approval", "idle"],
            bench_host::BenchHost::draw_screen,
        );
        all.push(HostLags { label: host.label, target: host.target, hook_lags, screen_lags });
    }
    let lists_before = outage::measure_lists(bench, plan);
    (all, OutageResults { lists_before, outages: outage::measure(bench, plan) })
}
