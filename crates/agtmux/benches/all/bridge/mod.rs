//! Many dashboards follow the bridge's stream, and some of them have stopped reading. The readers that still read must
//! miss no event, their lag must not grow, and the memory of the daemon must stay bounded.

mod measure;
mod plan;
mod report;
mod setup;

use plan::BridgeBenchPlan;
use setup::BridgeBench;

use crate::harness::BenchRun;

pub(crate) fn run(run: &BenchRun) {
    let plan = run.plan(BridgeBenchPlan::new(200.0, 60, 15), BridgeBenchPlan::new(20.0, 4, 2));
    let bench = BridgeBench::build(plan.agents);
    eprintln!("one reader: {} hooks/s for {:?}", plan.hooks_per_second, plan.baseline_duration);
    let alone = measure::run(&bench, &plan, plan.baseline_duration, 1, 0);
    eprintln!("{} readers and {} stalled, for {:?}", plan.readers, plan.stalled, plan.duration);
    let crowd = measure::run(&bench, &plan, plan.duration, plan.readers, plan.stalled);
    run.finish("benchmarks-bridge.md", &report::render(&plan, &alone, &crowd, &run.machine));
    assert_eq!(crowd.missed, 0, "active readers miss no event");
}
