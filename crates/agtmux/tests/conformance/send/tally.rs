//! What came of many sends.

use std::fmt;

use serde_json::Value;

#[derive(Debug, Default)]
pub(crate) struct SendTally {
    sent: usize,
    confirmed_by_event: usize,
    confirmed_by_box: usize,
    confirmed_by_change: usize,
    inconclusive: usize,
    retried: usize,
    latencies: Vec<u64>,
    /// Not taken by the agent, and so it was said.
    pub(crate) rejected: usize,
    /// What must not be.
    pub(crate) faults: Vec<String>,
}

impl SendTally {
    /// What the command said.
    pub(crate) fn count(&mut self, said: &Value) {
        self.sent += 1;
        match (said["verified"].as_str(), said["by"].as_str()) {
            (Some("confirmed"), Some("event")) => self.confirmed_by_event += 1,
            (Some("confirmed"), Some("box")) => self.confirmed_by_box += 1,
            (Some("confirmed"), _) => self.confirmed_by_change += 1,
            _ => self.inconclusive += 1,
        }
        self.retried += usize::from(said["attempts"].as_u64().is_some_and(|attempts| attempts > 1));
        self.latencies.extend(said["latency_ms"].as_u64());
    }

    pub(crate) fn event_confirmations(&self) -> usize {
        self.confirmed_by_event
    }

    pub(crate) fn confirmed(&self) -> usize {
        self.confirmed_by_event + self.confirmed_by_box + self.confirmed_by_change + self.rejected
    }

    fn percentile(&self, percent: usize) -> u64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(at).copied().unwrap_or_default()
    }
}

impl fmt::Display for SendTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            confirmed_by_event: by_event,
            confirmed_by_box: by_box,
            confirmed_by_change: by_change,
            inconclusive,
            retried,
            rejected: kept,
            ..
        } = self;
        write!(f, "{sent} sent: {by_event} confirmed by event, {by_box} by the box, {by_change} by change, ")?;
        write!(f, "{inconclusive} inconclusive, {kept} kept by the agent, {retried} with another Enter; ")?;
        write!(f, "p50 {} ms, p95 {} ms; {} faults", self.percentile(50), self.percentile(95), self.faults.len())
    }
}
