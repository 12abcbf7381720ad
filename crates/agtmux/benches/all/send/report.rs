use std::fmt::Write as _;
use std::time::Duration;

use agtmux_testkit::real_agents::states::EvidenceMode;

use super::send_bench::BenchSend;
use crate::harness::met;
use crate::harness::stats::percentile_ms;

const GOAL_MS: f64 = 400.0;

const INTRODUCTION: &str = "\
# Benchmarks: from sending a text to the proof of delivery

Measured by `make bench` with the real Claude Code and a mock model on the same machine. Texts of 60 B, 2 KB and 20 KB
alternate; each one arrived at the model unchanged. `agtmux send` is timed from the start of its process to its end.

| measured | samples | p50 | p95 | goal (p50) | |
|---|---|---|---|---|---|
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

    pub(crate) fn render(&self) -> String {
        let mut out = String::from(INTRODUCTION);
        let mut row = |name: &str, times: &[Duration], judged: bool| {
            let (p50, p95) = (percentile_ms(times, 0.5), percentile_ms(times, 0.95));
            let goal = if judged { format!("{GOAL_MS} ms") } else { String::new() };
            let met = met(judged.then_some(p50 <= GOAL_MS));
            let _ = writeln!(out, "| {name} | {} | {p50:.0} ms | {p95:.0} ms | {goal} | {met} |", times.len());
        };
        row("`agtmux send`, with hooks", &self.hooks, true);
        row("`agtmux send`, without hooks", &self.no_hooks, true);
        row("by hand: paste, wait 500 ms, Enter; no proof", &self.by_hand, false);
        row("the agent alone: from Enter to the model request", &self.agent_alone, false);
        let Self { by_event, by_box, unproved, .. } = self;
        let _ = writeln!(
            out,
            "\nProof of delivery: {by_event} sends by the agent's own event, {by_box} by its input box, {unproved} without proof."
        );
        out
    }
}
