//! How long it takes from the end of a task, or from its bell, to the line of `agtmux task events` that tells of it.
//!
//! Beside it a poller that looks every two seconds, as harnesses do that have no daemon, over the same tasks at the same time.

#[path = "../support/paper.rs"]
mod paper;
mod poller;
mod report;
#[path = "../support/stats.rs"]
mod stats;
mod task_session;

use std::time::{Duration, Instant};

use report::TasksReport;
use task_session::TaskSessionBench;

fn main() {
    let quick = paper::is_quick();
    let rounds = if quick { 2 } else { 60 };
    let scene = TaskSessionBench::start();
    let mut report = TasksReport::default();
    for round in 0..rounds {
        eprintln!("round {round}");
        let task = scene.launch(&format!("rings-{round}"), "while :; do read -r line < fifo && printf '\\a'; done");
        scene.poller.poll_after(poll_offset(2 * round));
        let start = Instant::now();
        scene.write("go\n");
        report.bells.push(scene.wait_for_event(&task, "notify") - start);
        report.bells_polled.push(scene.poller.wait_for_bell(&task) - start);
        scene.stop_task(&task);

        let task = scene.launch(&format!("ends-{round}"), "read -r line < fifo; exit 3");
        scene.poller.poll_after(poll_offset(2 * round + 1));
        let start = Instant::now();
        scene.write("go\n");
        report.exits.push(scene.wait_for_event(&task, "exited") - start);
        report.exits_polled.push(scene.poller.wait_for_exit(&task) - start);
        scene.stop_task(&task);
    }
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

/// When the poller looks next, different each time: what it is asked about comes at any moment between two of its looks.
fn poll_offset(nth: usize) -> Duration {
    let spread = (nth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(spread % u64::try_from(poller::POLL_INTERVAL.as_millis()).expect("a small number"))
}
