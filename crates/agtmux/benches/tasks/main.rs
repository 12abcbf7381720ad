//! How long it takes from the end of a task, or from its bell, to the line of `agtmux task events` that tells of it.
//!
//! Beside it a poller that looks every two seconds, as harnesses do that have no daemon, over the same tasks at the same time.

#[path = "../support/paper.rs"]
mod paper;
mod poller;
mod report;
mod scene;
#[path = "../support/stats.rs"]
mod stats;

use std::time::{Duration, Instant};

use report::Report;
use scene::Scene;

fn main() {
    let quick = paper::is_quick();
    let rounds = if quick { 2 } else { 60 };
    let scene = Scene::open();
    let mut report = Report::default();
    for round in 0..rounds {
        eprintln!("round {round}");
        let task = scene.launch(&format!("rings-{round}"), "while :; do read -r line < fifo && printf '\\a'; done");
        scene.poller.looks_in(phase(2 * round));
        let start = Instant::now();
        scene.write("go\n");
        report.bells.push(scene.told(&task, "notify") - start);
        report.bells_polled.push(scene.poller.rang(&task) - start);
        scene.end(&task);

        let task = scene.launch(&format!("ends-{round}"), "read -r line < fifo; exit 3");
        scene.poller.looks_in(phase(2 * round + 1));
        let start = Instant::now();
        scene.write("go\n");
        report.exits.push(scene.told(&task, "exited") - start);
        report.exits_polled.push(scene.poller.dead(&task) - start);
        scene.end(&task);
    }
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

/// When the poller looks next, different each time: what it is asked about comes at any moment between two of its looks.
fn phase(nth: usize) -> Duration {
    let spread = (nth as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    Duration::from_millis(spread % u64::try_from(poller::EVERY.as_millis()).expect("a small number"))
}
