use std::fmt::Write as _;
use std::time::Duration;

use crate::harness::met;
use crate::harness::stats::percentile_ms;

/// The measured times of one shell.
#[derive(Default)]
pub(crate) struct MirrorTimes {
    pub(crate) shell: &'static str,
    pub(crate) exec: Vec<Duration>,
    pub(crate) plain: Vec<Duration>,
    pub(crate) large: Vec<Duration>,
    pub(crate) large_plain: Vec<Duration>,
}

const INTRODUCTION: &str = "\
# Benchmarks: the shared terminal

Measured by `make bench`. `true` is the whole time of `agtmux mirror exec true`, from the start of the process to its end,
beside `bash -c true` in the same run. 5 MB is `agtmux mirror exec 'cat FILE'` with the output in a pipe, beside `cat FILE`
in a pane of the same server without a reader.

";

/// The goals in milliseconds. fish is slower by itself.
fn goals(shell: &str) -> (f64, f64) {
    if shell == "fish" { (25.0, 60.0) } else { (15.0, 40.0) }
}

/// How much longer the large output may take.
const GOAL_RATIO: f64 = 2.0;

pub(crate) fn render(machine: &str, all: &[MirrorTimes]) -> String {
    let mut out = format!(
        "{INTRODUCTION}{machine}\n\n| measured | samples | p50 | p95 | goal (p50, p95) | |\n|---|---|---|---|---|---|\n"
    );
    for times in all {
        let (p50, p95) = (percentile_ms(&times.exec, 0.5), percentile_ms(&times.exec, 0.95));
        let (goal_p50, goal_p95) = goals(times.shell);
        let verdict = met(Some(p50 <= goal_p50 && p95 <= goal_p95));
        let _ = writeln!(
            out,
            "| `mirror exec true`, {} | {} | {p50:.1} ms | {p95:.1} ms | {goal_p50} ms, {goal_p95} ms | {verdict} |",
            times.shell,
            times.exec.len()
        );
        let mut row = |name: &str, samples: &[Duration]| {
            let (p50, p95) = (percentile_ms(samples, 0.5), percentile_ms(samples, 0.95));
            let _ = writeln!(out, "| {name} | {} | {p50:.1} ms | {p95:.1} ms | | |", samples.len());
        };
        row("`bash -c true`", &times.plain);
        row(&format!("5 MB, {}", times.shell), &times.large);
        row("5 MB, `cat` in a pane", &times.large_plain);
    }
    for times in all {
        let ratio = percentile_ms(&times.large, 0.5) / percentile_ms(&times.large_plain, 0.5);
        let verdict = met(Some(ratio <= GOAL_RATIO));
        let _ = writeln!(
            out,
            "\n5 MB in {} takes {ratio:.1} times as long as `cat` (goal {GOAL_RATIO}: {verdict}).",
            times.shell
        );
    }
    out
}
