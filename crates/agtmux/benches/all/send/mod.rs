//! Measures the time from the start of `agtmux send` to the proof that the real Claude Code has accepted the text.
//!
//! For comparison, also measures a paste by hand, which gives no proof, and the time that the agent itself needs.

mod report;
mod send_bench;

use std::time::Duration;

use agtmux_testkit::real_agents::states::EvidenceMode;
use report::SendBenchReport;
use send_bench::SendBench;

use crate::harness::BenchRun;

/// The sizes of the texts in bytes: a line, a page, a file.
const TEXT_SIZES: [usize; 3] = [60, 2_000, 20_000];
/// The number of sends per session. After this many sends a new session starts, because long conversations become slow.
const SENDS_PER_SESSION: usize = 30;

pub(crate) fn run(run: &BenchRun) {
    let rounds = run.plan(60, 3);
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
    run.finish("benchmarks-send.md", &report.render());
}
