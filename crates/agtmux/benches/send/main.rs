//! How long it takes from asking for a text to be sent to the proof that the real Claude Code took it.
//!
//! Beside it what people do by hand, which proves nothing, and what the agent takes by itself.

#[path = "../../tests/conformance/agents/mod.rs"]
#[allow(dead_code, reason = "made for more")]
mod agents;
#[path = "../../tests/conformance/hooks.rs"]
mod hooks;
#[path = "../../tests/conformance/install.rs"]
#[allow(dead_code, reason = "made for more")]
mod install;
#[path = "../../tests/conformance/mark.rs"]
#[allow(unused_imports, reason = "its tests are run where it is at home")]
mod mark;
#[path = "../../tests/conformance/options.rs"]
#[allow(dead_code, reason = "made for more")]
mod options;
#[path = "../support/paper.rs"]
mod paper;
#[path = "../../tests/conformance/patience.rs"]
mod patience;
mod report;
#[path = "../../tests/conformance/room.rs"]
#[allow(dead_code, reason = "made for more")]
mod room;
mod stage;
#[path = "../support/stats.rs"]
mod stats;
#[path = "../../tests/conformance/watch.rs"]
#[allow(dead_code, reason = "made for more")]
mod watch;
#[path = "../../tests/conformance/words.rs"]
#[allow(dead_code, reason = "made for more")]
mod words;

use std::time::Duration;

use patience::until;
use report::Report;
use stage::Stage;
use words::Mode;

/// What is sent: a line, a page, a file.
const SIZES: [usize; 3] = [60, 2_000, 20_000];
/// A conversation that gets long gets slow.
const SESSION: usize = 30;

fn main() {
    let quick = paper::is_quick();
    let rounds = if quick { 3 } else { 60 };
    let programs = match stage::programs() {
        Ok(programs) => programs,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut report = Report::default();
    for mode in [Mode::Hooks, Mode::Bare] {
        let mut round = 0;
        while round < rounds {
            let stage = Stage::open(&programs, mode);
            for n in round..rounds.min(round + SESSION) {
                eprintln!("{} {n}", mode.word());
                let text = |kind: &str| stage::text(kind, n, SIZES[n % SIZES.len()]);
                report.sent(mode, stage.send(&text("sent")));
                if mode == Mode::Hooks {
                    report.by_hand(stage.by_hand(&text("typed"), Duration::from_millis(500)));
                    report.by_itself(stage.by_itself(&text("taken")));
                }
            }
            round += SESSION;
        }
    }
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}
