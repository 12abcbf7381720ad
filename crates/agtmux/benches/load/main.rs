//! Events as fast as a large fleet of busy agents would bring them: none may be lost, memory must stay flat, and whoever
//! watches must see each of them soon.
//!
//! `cargo bench -p agtmux --bench load` takes about two minutes and writes `docs/benchmarks-load.md`; `-- --quick` takes
//! a quarter of that and only prints.

mod connection;
#[path = "../support/paper.rs"]
mod paper;
mod plain_server;
mod plan;
mod report;
mod send;
mod setup;
#[path = "../support/stats.rs"]
mod stats;
mod stored_events;
mod watch;

use std::sync::Arc;

use plan::LoadBenchPlan;
use send::EventLoad;
use setup::LoadBench;

fn main() {
    let plan = LoadBenchPlan::from_args();
    let machine = paper::machine();
    let room = LoadBench::build(plan.runtimes);
    eprintln!("plain server: {} events/s for {:?}", plan.rate, plan.baseline_duration);
    let plain = plain_server::measure(&room, &plan);
    eprintln!("agtmux: {} events/s for {:?} over {} runtimes", plan.rate, plan.duration, plan.runtimes);
    let load = Arc::new(EventLoad::new(&plan, plan.duration, &room.runtimes));
    let watcher = watch::start(&room, &load);
    let (sent, memory, cpu) = send::run(&load, &room.world.socket(), Some(room.daemon_pid()));
    let seen = watcher.finish();
    let stored = stored_events::keys(&room.world.state_dir().join("state.db"));
    let measured = report::LoadMeasurement { sent, memory, cpu, stream: seen, stored, plain };
    let text = report::render(&plan, &measured, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks-load.md", &text);
    }
}
