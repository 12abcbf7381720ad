//! Measures the time from the end of a task, or from its bell, to its line of `agtmux task events`.
//!
//! For comparison, a poller checks the same tasks every two seconds, as harnesses without a daemon do.

#[path = "../support/bench_report.rs"]
mod bench_report;
mod poller;
mod report;
#[path = "../support/stats.rs"]
mod stats;
mod task_session;

use std::time::{Duration, Instant};

use report::TasksReport;
use task_session::TaskSessionBench;

fn main() {
    let quick = bench_report::is_quick();
    let rounds = if quick { 2 } else { 60 };
    let bench = TaskSessionBench::start();
    let mut report = TasksReport::default();
    for round in 0..rounds {
        eprintln!("round {round}");
        let task = bench.launch(&format!("rings-{round}"), "while :; do read -r line < fifo && printf '\\a'; done");
        bench.poller.poll_after(poll_offset(2 * round));
        let start = Instant::now();
        bench.write("go\n");
        report.bells.push(bench.wait_for_event(&task, "notify") - start);
        report.bells_polled.push(bench.poller.wait_for_bell(&task) - start);
        bench.stop_task(&task);

        let task = bench.launch(&format!("ends-{round}"), "read -r line < fifo; exit 3");
        bench.poller.poll_after(poll_offset(2 * round + 1));
        let start = Instant::now();
        bench.write("go\n");
        report.exits.push(bench.wait_for_event(&task, "exited") - start);
        report.exits_polled.push(bench.poller.wait_for_exit(&task) - start);
        bench.stop_task(&task);
    }
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

/// The time until the next poll, different in each round, so that events fall anywhere between two polls.
fn poll_offset(nth: usize) -> Duration {
    let spread = (nth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(spread % u64::try_from(poller::POLL_INTERVAL.as_millis()).expect("the interval fits"))
}
