//! The table, for the terminal and for `docs/benchmarks-bridge.md`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::measure::Measured;
use crate::plan::Plan;
use crate::stats::percentile;

const METHOD: &str = "\
## How it is measured

- One daemon with a port on loopback, one private tmux server, stand-ins for agents. Hooks (`POST /hook/…`) come over the unix
  socket on connections that are kept, one per agent; each agent is prompted and done in turn. A turn is two hooks and five events
  (two `turn_created`, three `state_changed`). Readers follow `GET /api/events/stream` over TCP, all of them in one process
  beside the daemon.
- **Lag**: from the moment just before a prompt is posted to the moment a reader has the `turn_created` of it. All readers count.
  *First* and *last* are the first and the last third of the prompts; where the lag grew, the ratio would.
- **Stalled** readers ask for the stream and read nothing. The daemon gives one up that takes nothing for 20 s: its open files
  tell.
- **Missed**: numbers left out in the ids of the events that a reader gets, and times that it is told to start over.
- **One reader**: the same hooks in the same run, before it, with one reader and nobody stalled.
";

pub(crate) fn text(plan: &Plan, alone: &Measured, crowd: &Measured, machine: &str) -> String {
    let mut out = format!(
        "# Many readers of the bridge's stream\n\nWhat `make bench` measured: {} readers and {} stalled, {:.0} hooks/s for {} s over {} \
         agents.\n\nMachine: {machine}.\n\n| measured | goal | {} readers | one reader | |\n|---|---|---|---|---|\n",
        plan.readers,
        plan.stalled,
        plan.hooks_per_second,
        plan.lasts.as_secs(),
        plan.agents,
        plan.readers,
    );
    let mut row = |what: &str, goal: &str, of: &dyn Fn(&Measured) -> String, met: Option<bool>| {
        let met = met.map(|met| if met { "met" } else { "**missed**" }).unwrap_or_default();
        let _ = writeln!(out, "| {what} | {goal} | {} | {} | {met} |", of(crowd), of(alone));
    };
    let rate = |m: &Measured| m.events as f64 / m.took.as_secs_f64();
    let wanted = plan.hooks_per_second * 2.5;
    row("hooks taken", "all", &|m| m.hooks.to_string(), Some(true));
    row("events for each reader", "", &|m| m.events.to_string(), None);
    let goal = format!("{wanted:.0}");
    row("events/s for each reader", &goal, &|m| format!("{:.0}", rate(m)), Some(rate(crowd) >= wanted * 0.95));
    row("missed by those who read", "0", &|m| m.missed.to_string(), Some(crowd.missed == 0));
    for (name, share) in [("p50", 0.5), ("p95", 0.95)] {
        row(&format!("lag, first third, {name}"), "", &|m| ms(percentile(thirds(m)[0], share)), None);
        row(&format!("lag, last third, {name}"), "", &|m| ms(percentile(thirds(m)[2], share)), None);
    }
    row("last to first, p50", "1.5 at the most", &|m| format!("{:.2}", growth(m)), Some(growth(crowd) <= 1.5));
    row("memory of the daemon, by thirds", "flat", &memory, Some(is_flat(crowd)));
    row("open files: before, with all, at the end", "", &|m| m.files.map(|n| n.to_string()).join(" / "), None);
    row("CPU of the daemon", "", &|m| format!("{:.0} % of one core", m.cpu), None);
    let _ = write!(out, "\n{METHOD}");
    out
}

fn thirds(m: &Measured) -> [&[f64]; 3] {
    let third = m.lags.len() / 3;
    [&m.lags[..third], &m.lags[third..third * 2], &m.lags[third * 2..]]
}

fn growth(m: &Measured) -> f64 {
    percentile(thirds(m)[2], 0.5) / percentile(thirds(m)[0], 0.5)
}

/// At the start, after a third, after two thirds and at the end.
fn looks(m: &Measured) -> Vec<f64> {
    let last = m.memory.len().saturating_sub(1);
    let at = |part: usize| m.memory.get(last * part / 3).map(|bytes| *bytes as f64 / f64::from(1 << 20));
    (0..4).filter_map(at).collect()
}

fn memory(m: &Measured) -> String {
    let shown: Vec<String> = looks(m).iter().map(|size| format!("{size:.1}")).collect();
    format!("{} MB", shown.join(" / "))
}

/// It keeps the last events for readers that come back, and grows until it has them.
fn is_flat(m: &Measured) -> bool {
    match looks(m).as_slice() {
        [.., settled, end] => *end <= settled * 1.1 + 1.0,
        _ => true,
    }
}

fn ms(millis: f64) -> String {
    format!("{millis:.1} ms")
}

pub(crate) fn write(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks-bridge.md");
    fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// What the figures depend on, but nothing that would tell whose machine it is.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, Linux {}; its load before the run was {load}", kernel.join("."))
}
