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
#[path = "../../tests/conformance/options.rs"]
#[allow(dead_code, reason = "made for more")]
mod options;
#[path = "../support/paper.rs"]
mod paper;
#[path = "../../tests/conformance/polling.rs"]
mod polling;
mod report;
#[path = "../../tests/conformance/sandbox.rs"]
#[allow(dead_code, reason = "made for more")]
mod sandbox;
#[path = "../../tests/conformance/screen_pattern.rs"]
#[allow(unused_imports, reason = "its tests are run where it is at home")]
mod screen_pattern;
mod send_bench;
#[path = "../../tests/conformance/states.rs"]
#[allow(dead_code, reason = "made for more")]
mod states;
#[path = "../support/stats.rs"]
mod stats;
#[path = "../../tests/conformance/watch.rs"]
#[allow(dead_code, reason = "made for more")]
mod watch;

use std::time::Duration;

use polling::poll_until;
use report::SendBenchReport;
use send_bench::SendBench;
use states::EvidenceMode;

/// What is sent: a line, a page, a file.
const TEXT_SIZES: [usize; 3] = [60, 2_000, 20_000];
/// A conversation that gets long gets slow.
const SENDS_PER_SESSION: usize = 30;

fn main() {
    let quick = paper::is_quick();
    let rounds = if quick { 3 } else { 60 };
    let programs = match send_bench::programs() {
        Ok(programs) => programs,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut report = SendBenchReport::default();
    for mode in [Mode::Hooks, Mode::Bare] {
        let mut round = 0;
        while round < rounds {
            let stage = SendBench::start(&programs, mode);
            for n in round..rounds.min(round + SENDS_PER_SESSION) {
                eprintln!("{} {n}", mode.word());
                let text = |kind: &str| send_bench::text(kind, n, TEXT_SIZES[n % TEXT_SIZES.len()]);
                report.add_send(mode, stage.send(&text("sent")));
                if mode == Mode::Hooks {
                    report.add_by_hand(stage.send_by_hand(&text("typed"), Duration::from_millis(500)));
                    report.add_agent_time(stage.measure_agent(&text("taken")));
                }
            }
            round += SENDS_PER_SESSION;
        }
    }
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}
