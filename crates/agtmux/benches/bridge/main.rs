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
mod room;
#[path = "../support/stats.rs"]
mod stats;

use plan::Plan;
use room::Room;

fn main() {
    let plan = Plan::from_args();
    let machine = paper::machine();
    let room = Room::build(plan.agents);
    eprintln!("one reader: {} hooks/s for {:?}", plan.hooks_per_second, plan.baseline);
    let alone = measure::run(&room, &plan, plan.baseline, 1, 0);
    eprintln!("{} readers and {} stalled, for {:?}", plan.readers, plan.stalled, plan.lasts);
    let crowd = measure::run(&room, &plan, plan.lasts, plan.readers, plan.stalled);
    let text = report::text(&plan, &alone, &crowd, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks-bridge.md", &text);
    }
    assert_eq!(crowd.missed, 0, "readers that keep up miss nothing");
}
