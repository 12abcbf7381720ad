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
mod naive;
#[path = "../support/paper.rs"]
mod paper;
mod plan;
mod report;
mod room;
#[path = "../support/stats.rs"]
mod stats;
mod writers;

use plan::Plan;
use report::Measured;
use room::Room;

fn main() {
    let plan = Plan::from_args();
    let machine = paper::machine();
    // Built before anything is measured, so that they can come to rest together.
    let mut rooms: Vec<Room> = plan.sizes.iter().map(|panes| Room::build(*panes)).collect();
    rooms.iter_mut().for_each(Room::start_daemon);
    let mut measured: Vec<Measured> = rooms.iter().map(|room| quick_things(room, &plan)).collect();
    load::idle(&rooms, &plan, &mut measured);
    for (room, measured) in rooms.iter().zip(&mut measured) {
        measured.busy = Some(load::busy(room, &plan));
    }
    for (room, measured) in rooms.iter_mut().zip(&mut measured) {
        measured.busy_calls = Some(calls::per_second(room, &plan));
    }
    let text = report::text(&measured, &machine);
    println!("{text}");
    if plan.writes_document {
        paper::write("benchmarks.md", &text);
    }
}

fn quick_things(room: &Room, plan: &Plan) -> Measured {
    eprintln!("{} panes: lists and changes", room.size);
    let lists = list::compare(room, plan);
    let lags = lag::measure(room, plan);
    Measured { panes: room.size, lists, lags, idle: None, busy: None, busy_calls: None }
}
