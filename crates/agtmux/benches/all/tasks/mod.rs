//! Measures the time from the end or the bell of a task to the line of `agtmux task events` that reports it.
//!
//! For comparison, a poller checks the same tasks every two seconds, as harnesses without a daemon do.

mod poller;
mod report;
mod task_session;

use std::time::Instant;

use poller::POLL_INTERVAL;
use report::TaskLags;
use task_session::TaskSessionBench;

use crate::harness::{BenchRun, spread};

pub(crate) fn run(run: &BenchRun) {
    let bench = TaskSessionBench::start();
    let mut lags = TaskLags::default();
    for round in 0..run.plan(60, 2) {
        eprintln!("round {round}");
        let task = bench.launch(&format!("rings-{round}"), "while :; do read -r line < fifo && printf '\\a'; done");
        // The time of the poll differs in each round, so that events fall anywhere between two polls.
        bench.poller.poll_after(spread(2 * round, POLL_INTERVAL));
        let start = Instant::now();
        bench.write("go\n");
        lags.bells.push(bench.wait_for_event(&task, "notify") - start);
        lags.bells_polled.push(bench.poller.wait_for_bell(&task) - start);
        bench.stop_task(&task);

        let task = bench.launch(&format!("ends-{round}"), "read -r line < fifo; exit 3");
        bench.poller.poll_after(spread(2 * round + 1, POLL_INTERVAL));
        let start = Instant::now();
        bench.write("go\n");
        lags.exits.push(bench.wait_for_event(&task, "exited") - start);
        lags.exits_polled.push(bench.poller.wait_for_exit(&task) - start);
        bench.stop_task(&task);
    }
    run.finish("benchmarks-tasks.md", &lags.render());
}
