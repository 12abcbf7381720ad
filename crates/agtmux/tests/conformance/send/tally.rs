//! What came of many sends.

use std::fmt;

use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: usize,
    by_event: usize,
    by_box: usize,
    by_change: usize,
    inconclusive: usize,
    retried: usize,
    latencies: Vec<u64>,
    /// Not taken by the agent, and so it was said.
    pub(crate) kept: usize,
    /// What must not be.
    pub(crate) faults: Vec<String>,
}

impl Tally {
    /// What the command said.
    pub(crate) fn count(&mut self, said: &Value) {
        self.sent += 1;
        match (said["verified"].as_str(), said["by"].as_str()) {
            (Some("confirmed"), Some("event")) => self.by_event += 1,
            (Some("confirmed"), Some("box")) => self.by_box += 1,
            (Some("confirmed"), _) => self.by_change += 1,
            _ => self.inconclusive += 1,
        }
        self.retried += usize::from(said["attempts"].as_u64().is_some_and(|attempts| attempts > 1));
        self.latencies.extend(said["latency_ms"].as_u64());
    }

    pub(crate) fn confirmed_by_event(&self) -> usize {
        self.by_event
    }

    pub(crate) fn confirmed(&self) -> usize {
        self.by_event + self.by_box + self.by_change + self.kept
    }

    fn percentile(&self, percent: usize) -> u64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(at).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, by_event, by_box, by_change, inconclusive, retried, kept, .. } = self;
        write!(f, "{sent} sent: {by_event} confirmed by event, {by_box} by the box, {by_change} by change, ")?;
        write!(f, "{inconclusive} inconclusive, {kept} kept by the agent, {retried} with another Enter; ")?;
        write!(f, "p50 {} ms, p95 {} ms; {} faults", self.percentile(50), self.percentile(95), self.faults.len())
    }
}
