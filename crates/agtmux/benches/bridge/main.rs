//! Many dashboards that follow the bridge's stream, some of which have stopped reading: the others must miss nothing, be told
//! as soon at the end as at the start, and the daemon must not grow.
//!
//! `cargo bench -p agtmux --bench bridge` takes about two minutes and writes `docs/benchmarks-bridge.md`; `-- --quick` takes
//! a few seconds and only prints.

#[path = "../../tests/support/trial_crowd.rs"]
mod crowd;
mod measure;
#[path = "../support/paper.rs"]
mod paper;
mod plan;
#[path = "../../tests/support/trial_posts.rs"]
mod posts;
mod report;
mod setup;
#[path = "../support/stats.rs"]
mod stats;

use plan::BridgeBenchPlan;
use setup::BridgeBench;

fn main() {
    let plan = BridgeBenchPlan::from_args();
    let machine = paper::machine();
    let room = BridgeBench::build(plan.agents);
    eprintln!("one reader: {} hooks/s for {:?}", plan.hooks_per_second, plan.baseline_duration);
    let alone = measure::run(&room, &plan, plan.baseline_duration, 1, 0);
    eprintln!("{} readers and {} stalled, for {:?}", plan.readers, plan.stalled, plan.duration);
    let crowd = measure::run(&room, &plan, plan.duration, plan.readers, plan.stalled);
    let text = report::render(&plan, &alone, &crowd, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks-bridge.md", &text);
    }
    assert_eq!(crowd.missed, 0, "readers that keep up miss nothing");
}
