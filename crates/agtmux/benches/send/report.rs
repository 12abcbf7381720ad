use std::fmt::Write as _;
use std::time::Duration;

use crate::paper;
use crate::send_bench::BenchSend;
use crate::stats::percentile_of as percentile;
use crate::words::Mode;

const FILE: &str = "benchmarks-send.md";
const GOAL: Duration = Duration::from_millis(400);

const INTRODUCTION: &str = "\
# Benchmarks: from a text to the proof that it was taken

What `make bench` measured on the real Claude Code, which talks to a mock model on the same machine. Texts of 60 B, 2 KB and 20 KB in
turn, each of which arrived at the model as it was sent. `agtmux send` is timed from the start of its process to its end.

";

#[derive(Default)]
pub(crate) struct SendBenchReport {
    hooks: Vec<Duration>,
    bare: Vec<Duration>,
    by_event: usize,
    by_box: usize,
    unproved: usize,
    by_hand: Vec<Duration>,
    by_itself: Vec<Duration>,
}

impl SendBenchReport {
    pub(crate) fn add_send(&mut self, mode: Mode, sent: BenchSend) {
        match mode {
            Mode::Hooks => self.hooks.push(sent.wall),
            Mode::Bare => self.bare.push(sent.wall),
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
        self.by_itself.push(wall);
    }

    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| measured | times | p50 | p95 | goal (p50) | |\n|---|---|---|---|---|---|\n");
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
        row("`agtmux send`, without", &self.bare, true);
        row("by hand: paste, 500 ms, Enter; no proof", &self.by_hand, false);
        row("the agent itself: from Enter to the model", &self.by_itself, false);
        let Self { by_event, by_box, unproved, .. } = self;
        let _ = writeln!(
            table,
            "\nOf all sends {by_event} were proved by the agent's own event, {by_box} by its input box, {unproved} not."
        );
        table
    }

    pub(crate) fn write(&self) {
        paper::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn ms(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}
