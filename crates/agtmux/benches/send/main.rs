//! Measures the time from the start of `agtmux send` to the proof that the real Claude Code has accepted the text.
//!
//! For comparison: pasting by hand, which proves nothing, and the time of the agent itself.

#[path = "../../tests/conformance/agents/mod.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod agents;
#[path = "../support/bench_report.rs"]
mod bench_report;
#[path = "../../tests/conformance/hooks.rs"]
mod hooks;
#[path = "../../tests/conformance/install.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod install;
#[path = "../../tests/conformance/options.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod options;
#[path = "../../tests/conformance/polling.rs"]
mod polling;
mod report;
#[path = "../../tests/conformance/sandbox.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod sandbox;
#[path = "../../tests/conformance/screen_pattern.rs"]
#[allow(unused_imports, reason = "its tests run in the conformance tests")]
mod screen_pattern;
mod send_bench;
#[path = "../../tests/conformance/states.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod states;
#[path = "../support/stats.rs"]
mod stats;
#[path = "../../tests/conformance/watch.rs"]
#[allow(dead_code, reason = "shared with the conformance tests")]
mod watch;

use std::time::Duration;

use polling::poll_until;
use report::SendBenchReport;
use send_bench::SendBench;
use states::EvidenceMode;

/// The sizes of the texts in bytes: a line, a page, a file.
const TEXT_SIZES: [usize; 3] = [60, 2_000, 20_000];
/// The number of sends per session. Long conversations become slow.
const SENDS_PER_SESSION: usize = 30;

fn main() {
    let quick = bench_report::is_quick();
    let rounds = if quick { 3 } else { 60 };
    let program_dirs = match send_bench::programs() {
        Ok(program_dirs) => program_dirs,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let mut report = SendBenchReport::default();
    for mode in EvidenceMode::ALL {
        let mut round = 0;
        while round < rounds {
            let bench = SendBench::start(&program_dirs, mode);
            for n in round..rounds.min(round + SENDS_PER_SESSION) {
                eprintln!("{} {n}", mode.as_str());
                let text = |kind: &str| send_bench::text(kind, n, TEXT_SIZES[n % TEXT_SIZES.len()]);
                report.add_send(mode, bench.send(&text("sent")));
                if mode == EvidenceMode::Hooks {
                    report.add_by_hand(bench.send_by_hand(&text("typed"), Duration::from_millis(500)));
                    report.add_agent_time(bench.measure_agent(&text("measured")));
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
