//! Events as fast as a large fleet of busy agents would bring them: none may be lost, memory must stay flat, and whoever
//! watches must see each of them soon.
//!
//! `cargo bench -p agtmux --bench load` takes about two minutes and writes `docs/benchmarks-load.md`; `-- --quick` takes
//! a quarter of that and only prints.

mod connection;
#[path = "../support/paper.rs"]
mod paper;
mod plain;
mod plan;
mod report;
mod room;
mod send;
#[path = "../support/stats.rs"]
mod stats;
mod stored;
mod watch;

use std::sync::Arc;

use plan::Plan;
use room::Room;
use send::Load;

fn main() {
    let plan = Plan::from_args();
    let machine = paper::machine();
    let room = Room::build(plan.runtimes);
    eprintln!("plain server: {} events/s for {:?}", plan.rate, plan.baseline);
    let plain = plain::measure(&room, &plan);
    eprintln!("agtmux: {} events/s for {:?} over {} runtimes", plan.rate, plan.lasts, plan.runtimes);
    let load = Arc::new(Load::new(&plan, plan.lasts, &room.runtimes));
    let watcher = watch::start(&room, &load);
    let (sent, memory, cpu) = send::run(&load, &room.world.socket(), Some(room.daemon_pid()));
    let seen = watcher.finish();
    let stored = stored::keys(&room.world.state_dir().join("state.db"));
    let measured = report::Measured { sent, memory, cpu, seen, stored, plain };
    let text = report::text(&plan, &measured, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks-load.md", &text);
    }
}
