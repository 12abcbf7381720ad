//! Measures cost and speed of agtmux on real tmux servers of several sizes. For comparison, the same run measures tmux
//! itself, a naive poller, and a server without an observer.

mod calls;
mod lag;
mod list;
mod load;
mod naive_poller;
mod plan;
mod report;
mod setup;
mod writers;

use plan::SpineBenchPlan;
use report::SpineMeasurement;
use setup::SpineBench;

use crate::harness::BenchRun;

pub(crate) fn run(run: &BenchRun) {
    let plan = run.plan(SpineBenchPlan::FULL, SpineBenchPlan::QUICK);
    // All servers are built before the first measurement, so that they settle together.
    let mut benches: Vec<SpineBench> = plan.sizes.iter().map(|panes| SpineBench::build(*panes)).collect();
    benches.iter_mut().for_each(SpineBench::start_daemon);
    let mut measured: Vec<SpineMeasurement> =
        benches.iter().map(|bench| measure_lists_and_lags(bench, &plan)).collect();
    load::idle(&benches, &plan, &mut measured);
    for (bench, measured) in benches.iter().zip(&mut measured) {
        measured.busy = Some(load::busy(bench, &plan));
    }
    for (bench, measured) in benches.iter_mut().zip(&mut measured) {
        measured.busy_calls = Some(calls::per_second(bench, &plan));
    }
    run.finish("benchmarks.md", &report::render(&measured, &run.machine));
}

fn measure_lists_and_lags(bench: &SpineBench, plan: &SpineBenchPlan) -> SpineMeasurement {
    eprintln!("{} panes: lists and changes", bench.size);
    let lists = list::compare(bench, plan);
    let lags = lag::measure(bench, plan);
    SpineMeasurement { panes: bench.size, lists, lags, idle: None, busy: None, busy_calls: None }
}
