//! Renders the report for the terminal and for `docs/benchmarks-load.md`.

use std::collections::HashSet;
use std::fmt::Write;

use super::plan::LoadBenchPlan;
use super::send::SendStats;
use super::watch::StreamLags;
use crate::harness;
use crate::harness::stats::{mebibytes, median, percentile};

#[derive(Debug)]
pub(crate) struct LoadMeasurement {
    pub(crate) sent: SendStats,
    pub(crate) memory: Vec<u64>,
    pub(crate) cpu: f64,
    pub(crate) stream: StreamLags,
    pub(crate) stored: HashSet<usize>,
    pub(crate) plain: SendStats,
}

const METHOD: &str = "\
## How it is measured

- One daemon, one private tmux server with a fake agent in every pane. Events go over persistent connections to the unix
  socket. Each connection sends its next event when it is due and the last one is acknowledged. Every event has the payload
  of a typical hook (about 700 bytes) and changes the state of its agent.
- **Acknowledged** means committed: the event survives a crash of the daemon (`kill -9`). SQLite runs with a write-ahead
  log and `synchronous=NORMAL`: after a power failure the database is intact, but the last events may be missing.
- **Lost**: acknowledged, but not in the database afterwards.
- **To the stream**: from just before an event is posted until a reader of `GET /v1/events` has the line with the new
  state. *From when it was due* also counts the time that a post waits for the previous one. If this value is much larger,
  the client did not reach the planned rate.
- **Plain store**: earlier in the same run, the same client sends the same events to a server that only commits each
  event as one row, with the same SQLite settings.
- **Memory** is the resident memory of the daemon at the start, after one third, after two thirds and at the end. The
  daemon keeps the last 8192 changes for readers that reconnect, so its memory grows until it has that many.
";

pub(crate) fn render(plan: &LoadBenchPlan, m: &LoadMeasurement, machine: &str) -> String {
    let seconds = plan.duration.as_secs();
    let mut out = format!(
        "# Events under load\n\nMeasured by `make bench`: {} events/s for {seconds} s over {} agents.\n\n\
         Machine: {machine}.\n\n| measured | goal | agtmux | plain store | |\n|---|---|---|---|---|\n",
        plan.rate, plan.runtimes
    );
    let lost = m.sent.acknowledged.iter().filter(|n| !m.stored.contains(n)).count();
    let refused = m.sent.sent - m.sent.acknowledged.len();
    let unseen = m.sent.acknowledged.len().saturating_sub(m.stream.since_post.len());
    let mut row = |label: &str, goal: &str, ours: String, plain: String, met: Option<bool>| {
        let _ = writeln!(out, "| {label} | {goal} | {ours} | {plain} | {} |", harness::met(met));
    };
    row("sent", "", m.sent.sent.to_string(), m.plain.sent.to_string(), None);
    row(
        "acknowledged",
        "all",
        m.sent.acknowledged.len().to_string(),
        m.plain.acknowledged.len().to_string(),
        Some(refused == 0),
    );
    row("stored", "all", m.stored.len().to_string(), String::new(), Some(m.stored.len() >= m.sent.acknowledged.len()));
    row("lost", "0", lost.to_string(), String::new(), Some(lost == 0));
    row("received on the stream", "all", m.stream.since_post.len().to_string(), String::new(), Some(unseen == 0));
    let late = percentile(&m.sent.start_delays, 0.99);
    row(
        "delay of posts against the plan, p99",
        "100 ms",
        ms(late),
        ms(percentile(&m.plain.start_delays, 0.99)),
        Some(late <= 100.0),
    );
    row("time to acknowledgement, p50", "", ms(median(&m.sent.to_ack)), ms(median(&m.plain.to_ack)), None);
    row(
        "time to acknowledgement, p99",
        "",
        ms(percentile(&m.sent.to_ack, 0.99)),
        ms(percentile(&m.plain.to_ack, 0.99)),
        None,
    );
    row("time to the stream, p50", "", ms(median(&m.stream.since_post)), String::new(), None);
    let p99 = percentile(&m.stream.since_post, 0.99);
    row("time to the stream, p99", "100 ms", ms(p99), String::new(), Some(p99 <= 100.0));
    let p99 = percentile(&m.stream.since_due, 0.99);
    row("time to the stream from when it was due, p99", "100 ms", ms(p99), String::new(), Some(p99 <= 100.0));
    row("time to the stream, maximum", "", ms(percentile(&m.stream.since_post, 1.0)), String::new(), None);
    let memory: Vec<f64> = m.memory.iter().copied().map(mebibytes).collect();
    let samples: Vec<String> = memory.iter().map(|size| format!("{size:.1}")).collect();
    let flat = match memory.as_slice() {
        [_, settled, .., end] => Some(*end <= settled * 1.1 + 1.0),
        _ => None,
    };
    row("memory of the daemon", "flat", format!("{} MB", samples.join(" / ")), String::new(), flat);
    row("CPU of the daemon", "", format!("{:.0} % of one core", m.cpu), String::new(), None);
    let _ = write!(out, "\n{METHOD}");
    out
}

fn ms(millis: f64) -> String {
    format!("{millis:.1} ms")
}
