//! The table, for the terminal and for `docs/benchmarks-bridge.md`.

use std::fmt::Write;

use crate::measure::BridgeMeasurement;
use crate::paper::met;
use crate::plan::BridgeBenchPlan;
use crate::stats::percentile;

/// What a connection may hold: what was read and not yet understood, what waits to be written, and the next few events.
const MIB_PER_CONNECTION: f64 = 0.25;
/// What is kept of the last events for readers that come back.
const MIB_FOR_EVENTS: f64 = 8.0;

const METHOD: &str = "\
## How it is measured

- One daemon with a port on loopback, one private tmux server, stand-ins for agents. Hooks (`POST /hook/…`) come over the unix
  socket on connections that are kept, one per agent; each agent is prompted and done in turn. A turn is two hooks and five events
  (two `turn_created`, three `state_changed`). Readers follow `GET /api/events/stream` over TCP, all of them in one process
  beside the daemon.
- **Lag**: from the moment just before a prompt is posted to the moment a reader has the `turn_created` of it. All readers count.
  The quarters are those of the prompts in the order in which they were posted: where the lag grew, so would the later ones.
- **Stalled** readers ask for the stream and read nothing. The daemon gives one up that takes nothing for 20 s, once what the
  kernel keeps for it is full: its open files tell.
- **Missed**: numbers left out in the ids of the events that a reader gets, and times that it is told to start over.
- **Memory** is what the daemon holds. Its bound is what it held at the start, 8 MB for the last events and 0.25 MB for each connection.
- **One reader**: the same hooks in the same run, before it, with one reader and nobody stalled. The ratio is to that.
";

pub(crate) fn render(
    plan: &BridgeBenchPlan,
    alone: &BridgeMeasurement,
    crowd: &BridgeMeasurement,
    machine: &str,
) -> String {
    let mut out = format!(
        "# Many readers of the bridge's stream\n\nWhat `make bench` measured: {} readers and {} stalled, {:.0} hooks/s for {} s over {} \
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
    let mut row = |what: &str, goal: &str, of: &dyn Fn(&BridgeMeasurement) -> String, is_met: Option<bool>| {
        let _ = writeln!(out, "| {what} | {goal} | {} | {} | | {} |", of(crowd), of(alone), met(is_met));
    };
    let rate = |m: &BridgeMeasurement| m.events as f64 / m.took.as_secs_f64();
    let wanted = plan.hooks_per_second * 2.5;
    row("hooks posted and taken", "", &|m| m.hooks.to_string(), None);
    row("time that it took", "", &|m| format!("{:.1} s", m.took.as_secs_f64()), None);
    row("events for each reader", "", &|m| m.events.to_string(), None);
    let reached = Some(rate(crowd) >= wanted * 0.95);
    row("events/s for each reader", &format!("{wanted:.0}"), &|m| format!("{:.0}", rate(m)), reached);
    row("missed by those who read", "0", &|m| m.missed.to_string(), Some(crowd.missed == 0));
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
    let _ = writeln!(out, "| last quarter to first, p50 | 1.5 at the most | {ours:.2} | {one:.2} | | {flat} |");
}

fn costs(out: &mut String, plan: &BridgeBenchPlan, alone: &BridgeMeasurement, crowd: &BridgeMeasurement) {
    let ends = |m: &BridgeMeasurement| {
        let mib = |bytes: Option<&u64>| bytes.map_or(f64::NAN, |bytes| *bytes as f64 / f64::from(1 << 20));
        (mib(m.memory.first()), mib(m.memory.iter().max()), mib(m.memory.last()))
    };
    let shown = |m: &BridgeMeasurement| {
        let (start, most, end) = ends(m);
        format!("{start:.1} / {most:.1} / {end:.1} MB")
    };
    let (start, most, _) = ends(crowd);
    let bound = start + MIB_FOR_EVENTS + MIB_PER_CONNECTION * (plan.readers + plan.stalled) as f64;
    let is_met = met(Some(most <= bound));
    let (ours, one) = (shown(crowd), shown(alone));
    let _ = writeln!(out, "| memory: start / most / end | {bound:.0} MB at the most | {ours} | {one} | | {is_met} |");
    let files = |m: &BridgeMeasurement| m.open_files.map(|n| n.to_string()).join(" / ");
    let (ours, one) = (files(crowd), files(alone));
    let _ = writeln!(out, "| open files: before / with all / at the end | | {ours} | {one} | | |");
    let [_, all, end] = crowd.open_files;
    let _ = writeln!(out, "| stalled readers given up | {} | {} | | | |", plan.stalled, all.saturating_sub(end));
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
