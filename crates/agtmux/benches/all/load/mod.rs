//! Sends events at the rate of a large fleet of busy agents. No event may be lost, memory must stay flat, and readers
//! of the stream must see each event soon.

mod plain_server;
mod plan;
mod report;
mod send;
mod setup;
mod stored_events;
mod watch;

use std::sync::Arc;

use plan::LoadBenchPlan;
use send::EventLoad;
use setup::LoadBench;

use crate::harness::BenchRun;

pub(crate) fn run(run: &BenchRun) {
    let plan = run.plan(LoadBenchPlan::new(60, 20), LoadBenchPlan::new(5, 2));
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
    run.finish("benchmarks-load.md", &report::render(&plan, &measured, &run.machine));
}
