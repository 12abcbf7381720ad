//! Sends events at the rate of a large fleet of busy agents. No event may be lost, memory must stay flat, and readers
//! of the stream must see each event soon.
//!
//! `cargo bench -p agtmux --bench load` takes about two minutes and writes `docs/benchmarks-load.md`. With `-- --quick`
//! it takes a quarter of that and only prints.

#[path = "../support/bench_report.rs"]
mod bench_report;
mod connection;
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
    let machine = bench_report::machine();
    let bench = LoadBench::build(plan.runtimes);
    eprintln!("plain server: {} events/s for {:?}", plan.rate, plan.baseline_duration);
    let plain = plain_server::measure(&bench, &plan);
    eprintln!("agtmux: {} events/s for {:?} over {} runtimes", plan.rate, plan.duration, plan.runtimes);
    let load = Arc::new(EventLoad::new(&plan, plan.duration, &bench.runtimes));
    let watcher = watch::start(&bench, &load);
    let (sent, memory, cpu) = send::run(&load, &bench.world.socket(), Some(bench.daemon_pid()));
    let stream = watcher.finish();
    let stored = stored_events::keys(&bench.world.state_dir().join("state.db"));
    let measured = report::LoadMeasurement { sent, memory, cpu, stream, stored, plain };
    let text = report::render(&plan, &measured, &machine);
    println!("{text}");
    if plan.writes_document {
        bench_report::write("benchmarks-load.md", &text);
    }
}
