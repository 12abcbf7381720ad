//! Renders the report for the terminal and for `docs/benchmarks-bridge.md`.

use std::fmt::Write;

use super::measure::BridgeMeasurement;
use super::plan::BridgeBenchPlan;
use crate::harness::met;
use crate::harness::stats::{mebibytes, percentile};

/// How much memory the daemon may use per connection, for a read buffer, a write buffer and a few events.
const MIB_PER_CONNECTION: f64 = 0.25;
/// How much memory the daemon may use for the events that it keeps for readers that reconnect.
const MIB_FOR_EVENTS: f64 = 8.0;

const METHOD: &str = "\
## How it is measured

- One daemon with a port on loopback, one private tmux server with fake agents. Hooks (`POST /hook/…`) go over persistent
  connections to the unix socket, one per agent. Each agent alternates between prompt and stop. A turn is two hooks and five
  events (two `turn_created`, three `state_changed`). Readers follow `GET /api/events/stream` over TCP. All readers run in
  one process on the same machine.
- **Lag**: from just before a prompt is posted until a reader has its `turn_created`. All readers count.
  The quarters divide the prompts in the order of posting: a growing lag shows in the later quarters.
- **Stalled** readers request the stream and read nothing. Once the kernel buffer of such a reader is full, the daemon
  disconnects it after 20 s. The number of open files shows this.
- **Missed**: gaps in the event ids that a reader receives, plus the number of resets.
- **Memory** is the resident memory of the daemon. The limit is the value at the start plus 8 MB for stored events plus
  0.25 MB per connection.
- **One reader**: the same hooks earlier in the same run, with one reader and no stalled reader. The ratio is relative to
  this.
";

pub(crate) fn render(
    plan: &BridgeBenchPlan,
    alone: &BridgeMeasurement,
    crowd: &BridgeMeasurement,
    machine: &str,
) -> String {
    let mut out = format!(
        "# Many readers of the bridge's stream\n\nMeasured by `make bench`: {} readers and {} stalled, {:.0} hooks/s for {} s over {} \
         agents.\n\nMachine: {machine}.\n\n| measured | goal | {} readers | one reader | ratio | |\n|---|---|---|---|---|---|\n",
        plan.readers,
        plan.stalled,
        plan.hooks_per_second,
        plan.duration.as_secs(),
        plan.agents,
        plan.readers,
    );
    rates(&mut out, plan, alone, crowd);
    lags(&mut out, alone, crowd);
    costs(&mut out, plan, alone, crowd);
    let _ = write!(out, "\n{METHOD}");
    out
}

fn rates(out: &mut String, plan: &BridgeBenchPlan, alone: &BridgeMeasurement, crowd: &BridgeMeasurement) {
    let mut row = |label: &str, goal: &str, of: &dyn Fn(&BridgeMeasurement) -> String, is_met: Option<bool>| {
        let _ = writeln!(out, "| {label} | {goal} | {} | {} | | {} |", of(crowd), of(alone), met(is_met));
    };
    let rate = |m: &BridgeMeasurement| m.events as f64 / m.took.as_secs_f64();
    let wanted = plan.hooks_per_second * 2.5;
    row("hooks posted and accepted", "", &|m| m.hooks.to_string(), None);
    row("duration", "", &|m| format!("{:.1} s", m.took.as_secs_f64()), None);
    row("events per reader", "", &|m| m.events.to_string(), None);
    let reached = Some(rate(crowd) >= wanted * 0.95);
    row("events/s per reader", &format!("{wanted:.0}"), &|m| format!("{:.0}", rate(m)), reached);
    row("missed by active readers", "0", &|m| m.missed.to_string(), Some(crowd.missed == 0));
}

fn lags(out: &mut String, alone: &BridgeMeasurement, crowd: &BridgeMeasurement) {
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let of = |m: &BridgeMeasurement| percentile(&m.lags, share);
        let (ours, one) = (of(crowd), of(alone));
        let _ = writeln!(out, "| lag, {name} | | {} | {} | {:.2} | |", ms(ours), ms(one), ours / one);
    }
    let of = |m: &BridgeMeasurement| {
        let medians: Vec<String> = quarters(m).iter().map(|lags| format!("{:.1}", percentile(lags, 0.5))).collect();
        format!("{} ms", medians.join(" / "))
    };
    let _ = writeln!(out, "| lag by quarters, p50 | | {} | {} | | |", of(crowd), of(alone));
    let flat = met(Some(growth(crowd) <= 1.5));
    let (ours, one) = (growth(crowd), growth(alone));
    let _ = writeln!(out, "| last quarter to first, p50 | at most 1.5 | {ours:.2} | {one:.2} | | {flat} |");
}

fn costs(out: &mut String, plan: &BridgeBenchPlan, alone: &BridgeMeasurement, crowd: &BridgeMeasurement) {
    let ends = |m: &BridgeMeasurement| {
        let mib = |bytes: Option<&u64>| bytes.copied().map_or(f64::NAN, mebibytes);
        (mib(m.memory.first()), mib(m.memory.iter().max()), mib(m.memory.last()))
    };
    let memory_text = |m: &BridgeMeasurement| {
        let (start, most, end) = ends(m);
        format!("{start:.1} / {most:.1} / {end:.1} MB")
    };
    let (start, most, _) = ends(crowd);
    let bound = start + MIB_FOR_EVENTS + MIB_PER_CONNECTION * (plan.readers + plan.stalled) as f64;
    let is_met = met(Some(most <= bound));
    let (ours, one) = (memory_text(crowd), memory_text(alone));
    let _ = writeln!(out, "| memory: start / maximum / end | at most {bound:.0} MB | {ours} | {one} | | {is_met} |");
    let files = |m: &BridgeMeasurement| m.open_files.map(|n| n.to_string()).join(" / ");
    let (ours, one) = (files(crowd), files(alone));
    let _ = writeln!(out, "| open files: before / all connected / end | | {ours} | {one} | | |");
    let [_, all, end] = crowd.open_files;
    let _ = writeln!(out, "| stalled readers disconnected | {} | {} | | | |", plan.stalled, all.saturating_sub(end));
    let cpu = crowd.cpu / alone.cpu;
    let _ = writeln!(
        out,
        "| CPU of the daemon | | {:.0} % of one core | {:.0} % of one core | {cpu:.2} | |",
        crowd.cpu, alone.cpu
    );
}

fn quarters(m: &BridgeMeasurement) -> [&[f64]; 4] {
    let quarter = m.lags.len() / 4;
    let part = |n: usize| &m.lags[quarter * n..if n == 3 { m.lags.len() } else { quarter * (n + 1) }];
    [part(0), part(1), part(2), part(3)]
}

fn growth(m: &BridgeMeasurement) -> f64 {
    percentile(quarters(m)[3], 0.5) / percentile(quarters(m)[0], 0.5)
}

fn ms(millis: f64) -> String {
    format!("{millis:.1} ms")
}
