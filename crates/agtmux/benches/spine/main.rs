//! What agtmux costs, and how quick it is, on real tmux servers of several sizes: beside tmux itself, beside a naive
//! poller and beside no observer at all, all in one run.
//!
//! `cargo bench -p agtmux --bench spine` takes about ten minutes and writes `docs/benchmarks.md`; `-- --quick` takes one
//! minute and only prints.

mod calls;
mod lag;
mod list;
mod load;
mod meter;
mod naive_poller;
#[path = "../support/paper.rs"]
mod paper;
mod plan;
mod report;
mod setup;
#[path = "../support/stats.rs"]
mod stats;
mod writers;

use plan::SpineBenchPlan;
use report::SpineMeasurement;
use setup::SpineBench;

fn main() {
    let plan = SpineBenchPlan::from_args();
    let machine = paper::machine();
    // Built before anything is measured, so that they can come to rest together.
    let mut rooms: Vec<SpineBench> = plan.sizes.iter().map(|panes| SpineBench::build(*panes)).collect();
    rooms.iter_mut().for_each(SpineBench::start_daemon);
    let mut measured: Vec<SpineMeasurement> = rooms.iter().map(|room| measure_lists_and_lags(room, &plan)).collect();
    load::idle(&rooms, &plan, &mut measured);
    for (room, measured) in rooms.iter().zip(&mut measured) {
        measured.busy = Some(load::busy(room, &plan));
    }
    for (room, measured) in rooms.iter_mut().zip(&mut measured) {
        measured.busy_calls = Some(calls::per_second(room, &plan));
    }
    let text = report::render(&measured, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks.md", &text);
    }
}

fn measure_lists_and_lags(room: &SpineBench, plan: &SpineBenchPlan) -> SpineMeasurement {
    eprintln!("{} panes: lists and changes", room.size);
    let lists = list::compare(room, plan);
    let lags = lag::measure(room, plan);
    SpineMeasurement { panes: room.size, lists, lags, idle: None, busy: None, busy_calls: None }
}
