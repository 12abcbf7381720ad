//! Counts the results of many sends.

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
    /// Rejected by the agent and reported as such.
    pub(crate) rejected: usize,
    /// Failures.
    pub(crate) faults: Vec<String>,
}

impl SendTally {
    /// Adds the JSON result of one send.
    pub(crate) fn count(&mut self, result: &Value) {
        self.sent += 1;
        match (result["verified"].as_str(), result["by"].as_str()) {
            (Some("confirmed"), Some("event")) => self.confirmed_by_event += 1,
            (Some("confirmed"), Some("box")) => self.confirmed_by_box += 1,
            (Some("confirmed"), _) => self.confirmed_by_change += 1,
            _ => self.inconclusive += 1,
        }
        self.retried += usize::from(result["attempts"].as_u64().is_some_and(|attempts| attempts > 1));
        self.latencies.extend(result["latency_ms"].as_u64());
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
            confirmed_by_event,
            confirmed_by_box,
            confirmed_by_change,
            inconclusive,
            retried,
            rejected,
            ..
        } = self;
        write!(f, "{sent} sent: {confirmed_by_event} confirmed by event, {confirmed_by_box} by the input box, ")?;
        write!(f, "{confirmed_by_change} by a screen change, ")?;
        write!(
            f,
            "{inconclusive} inconclusive, {rejected} rejected by the agent, {retried} with more than one Enter; "
        )?;
        write!(f, "p50 {} ms, p95 {} ms; {} faults", self.percentile(50), self.percentile(95), self.faults.len())
    }
}
