//! Agents on three hosts behind a real sshd beside those of this one: how long it takes from what one does to a line of
//! `agtmux watch` on the hub, with sixty panes and ten events a second, also while
//! one of the hosts is away; how soon that is known; and what twenty idle targets cost.
//!
//! `cargo bench -p agtmux --bench ssh` writes `docs/benchmarks-ssh.md`; `-- --quick` only prints.

mod bench_host;
#[path = "../load/connection.rs"]
#[allow(dead_code, reason = "only its posting is needed here")]
mod connection;
mod idle;
#[path = "../spine/meter.rs"]
#[allow(dead_code, reason = "shared with another benchmark")]
mod meter;
mod outage;
#[path = "../support/paper.rs"]
mod paper;
mod report;
mod setup;
#[path = "../support/stats.rs"]
mod stats;

use std::time::Duration;

use agtmux_testkit::hosts_unavailable_reason;
use report::{HostLags, OutageResults, SshReport};
use setup::SshBench;

/// How often each is measured, and for how long nothing happens.
pub(crate) struct SshBenchPlan {
    pub(crate) rounds: usize,
    pub(crate) idle: Duration,
    pub(crate) targets: usize,
    /// How often each kind of outage happens, how often the others are measured during the last of them, and how many
    /// lists are asked for at a time.
    pub(crate) outages: u32,
    pub(crate) outage_rounds: usize,
    pub(crate) lists: usize,
}

fn main() {
    if let Some(why) = hosts_unavailable_reason() {
        return eprintln!("SKIPPED: {why}");
    }
    let quick = paper::is_quick();
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
    let room = SshBench::build();
    let (lags, away) = measure_lags(&room, &plan);
    drop(room);
    eprintln!("{} idle targets", plan.targets);
    let idle = [false, true].map(|bare| idle::measure(&plan, bare));
    let report = SshReport { lags, outage_results: away, idle };
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

fn measure_lags(room: &SshBench, plan: &SshBenchPlan) -> (Vec<HostLags>, OutageResults) {
    let _load = room.start_load();
    let mut all = Vec::new();
    for place in &room.bench_hosts {
        eprintln!("{}", place.label);
        let native = match place.has_agtmux {
            true => place.measure_lags(
                &room.lines,
                plan.rounds,
                &["running", "completed"],
                bench_host::BenchHost::send_hook,
            ),
            false => Vec::new(),
        };
        let shown = place.measure_lags(
            &room.lines,
            plan.rounds,
            &["waiting_approval", "idle"],
            bench_host::BenchHost::draw_screen,
        );
        all.push(HostLags { label: place.label, target: place.target, hook_lags: native, screen_lags: shown });
    }
    let lists_before = outage::measure_lists(room, plan);
    (all, OutageResults { lists_before, outages: outage::measure(room, plan) })
}
