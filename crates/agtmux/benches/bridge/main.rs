//! Many dashboards follow the bridge's stream, and some of them have stopped reading. The others must miss no event,
//! the lag must not grow, and the memory of the daemon must stay bounded.
//!
//! `cargo bench -p agtmux --bench bridge` takes about two minutes and writes `docs/benchmarks-bridge.md`. With
//! `-- --quick` it takes a few seconds and only prints.

#[path = "../support/bench_report.rs"]
mod bench_report;
mod measure;
mod plan;
mod report;
mod setup;
#[path = "../support/stats.rs"]
mod stats;

use plan::BridgeBenchPlan;
use setup::BridgeBench;

fn main() {
    let plan = BridgeBenchPlan::from_args();
    let machine = bench_report::machine();
    let bench = BridgeBench::build(plan.agents);
    eprintln!("one reader: {} hooks/s for {:?}", plan.hooks_per_second, plan.baseline_duration);
    let alone = measure::run(&bench, &plan, plan.baseline_duration, 1, 0);
    eprintln!("{} readers and {} stalled, for {:?}", plan.readers, plan.stalled, plan.duration);
    let crowd = measure::run(&bench, &plan, plan.duration, plan.readers, plan.stalled);
    let text = report::render(&plan, &alone, &crowd, &machine);
    println!("{text}");
    if plan.writes_document {
        bench_report::write("benchmarks-bridge.md", &text);
    }
    assert_eq!(crowd.missed, 0, "active readers miss no event");
}
