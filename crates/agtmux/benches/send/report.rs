use std::fmt::Write as _;
use std::time::Duration;

use agtmux_testkit::real_agents::states::EvidenceMode;

use crate::bench_report;
use crate::send_bench::BenchSend;
use crate::stats::percentile_of as percentile;

const FILE: &str = "benchmarks-send.md";
const GOAL: Duration = Duration::from_millis(400);

const INTRODUCTION: &str = "\
# Benchmarks: from sending a text to the proof of delivery

Measured by `make bench` with the real Claude Code and a mock model on the same machine. Texts of 60 B, 2 KB and 20 KB
alternate; each one arrived at the model unchanged. `agtmux send` is timed from the start of its process to its end.

";

#[derive(Default)]
pub(crate) struct SendBenchReport {
    hooks: Vec<Duration>,
    no_hooks: Vec<Duration>,
    by_event: usize,
    by_box: usize,
    unproved: usize,
    by_hand: Vec<Duration>,
    agent_alone: Vec<Duration>,
}

impl SendBenchReport {
    pub(crate) fn add_send(&mut self, mode: EvidenceMode, sent: BenchSend) {
        match mode {
            EvidenceMode::Hooks => self.hooks.push(sent.wall),
            EvidenceMode::NoHooks => self.no_hooks.push(sent.wall),
        }
        match (sent.verified.as_str(), sent.by.as_str()) {
            ("confirmed", "event") => self.by_event += 1,
            ("confirmed", "box") => self.by_box += 1,
            _ => self.unproved += 1,
        }
    }

    pub(crate) fn add_by_hand(&mut self, wall: Duration) {
        self.by_hand.push(wall);
    }

    pub(crate) fn add_agent_time(&mut self, wall: Duration) {
        self.agent_alone.push(wall);
    }

    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | samples | p50 | p95 | goal (p50) | |\n|---|---|---|---|---|---|\n");
        let mut row = |name: &str, times: &[Duration], goal: bool| {
            let (p50, p95) = (percentile(times, 50), percentile(times, 95));
            let met = match goal {
                true if p50 <= GOAL => "400 ms | met",
                true => "400 ms | **missed**",
                false => " | ",
            };
            let _ = writeln!(table, "| {name} | {} | {} | {} | {met} |", times.len(), ms(p50), ms(p95));
        };
        row("`agtmux send`, with hooks", &self.hooks, true);
        row("`agtmux send`, without hooks", &self.no_hooks, true);
        row("by hand: paste, wait 500 ms, Enter; no proof", &self.by_hand, false);
        row("the agent alone: from Enter to the model request", &self.agent_alone, false);
        let Self { by_event, by_box, unproved, .. } = self;
        let _ = writeln!(
            table,
            "\nProof of delivery: {by_event} sends by the agent's own event, {by_box} by its input box, {unproved} without proof."
        );
        table
    }

    pub(crate) fn write(&self) {
        bench_report::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
