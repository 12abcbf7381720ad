//! Agents on three hosts behind a real sshd beside those of this one: how long it takes from what one does to a line of
//! `agtmux watch` on the hub, with sixty panes and ten events a second, also while
//! one of the hosts is away; how soon that is known; and what twenty idle targets cost.
//!
//! `cargo bench -p agtmux --bench ssh` writes `docs/benchmarks-ssh.md`; `-- --quick` only prints.

#[path = "../load/connection.rs"]
#[allow(dead_code, reason = "only its posting is needed here")]
mod connection;
mod idle;
#[path = "../spine/meter.rs"]
#[allow(dead_code, reason = "shared with another benchmark")]
mod meter;
mod outage;
#[path = "../support/paper.rs"]
mod paper;
mod place;
mod report;
mod room;
#[path = "../support/stats.rs"]
mod stats;

use std::time::Duration;

use agtmux_testkit::no_hosts_because;
use report::{Away, Lags, Report};
use room::Room;

/// How often each is measured, and for how long nothing happens.
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) idle: Duration,
    pub(crate) targets: usize,
    /// How often each kind of outage happens, how often the others are measured during the last of them, and how many
    /// lists are asked for at a time.
    pub(crate) outages: u32,
    pub(crate) rounds_away: usize,
    pub(crate) lists: usize,
}

fn main() {
    if let Some(why) = no_hosts_because() {
        return eprintln!("SKIPPED: {why}");
    }
    let quick = paper::is_quick();
    let plan = if quick {
        Plan { rounds: 2, idle: Duration::from_secs(4), targets: 4, outages: 1, rounds_away: 2, lists: 5 }
    } else {
        Plan { rounds: 25, idle: Duration::from_secs(30), targets: 20, outages: 3, rounds_away: 12, lists: 50 }
    };
    let room = Room::build();
    let (lags, away) = measure(&room, &plan);
    drop(room);
    eprintln!("{} idle targets", plan.targets);
    let idle = [false, true].map(|bare| idle::measure(&plan, bare));
    let report = Report { lags, away, idle };
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

fn measure(room: &Room, plan: &Plan) -> (Vec<Lags>, Away) {
    let _load = room.load();
    let mut all = Vec::new();
    for place in &room.places {
        eprintln!("{}", place.what);
        let native = match place.tells {
            true => place.lags(&room.lines, plan.rounds, &["running", "completed"], place::Place::says),
            false => Vec::new(),
        };
        let shown = place.lags(&room.lines, plan.rounds, &["waiting_approval", "idle"], place::Place::shows);
        all.push(Lags { what: place.what, target: place.target, native, shown });
    }
    let lists_before = outage::lists(room, plan);
    (all, Away { lists_before, outages: outage::measure(room, plan) })
}
