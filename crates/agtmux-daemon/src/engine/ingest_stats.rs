//! Measures the time from the arrival of an event until it is stored and published.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct IngestStats {
    count: AtomicU64,
    total_micros: AtomicU64,
    last_micros: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IngestSummary {
    pub(crate) count: u64,
    pub(crate) total: Duration,
    pub(crate) last: Duration,
}

impl IngestStats {
    pub(super) fn record(&self, lag: Duration) {
        let micros = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_micros.fetch_add(micros, Ordering::Relaxed);
        self.last_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self) -> IngestSummary {
        let duration = |micros: &AtomicU64| Duration::from_micros(micros.load(Ordering::Relaxed));
        let (total, last) = (duration(&self.total_micros), duration(&self.last_micros));
        IngestSummary { count: self.count.load(Ordering::Relaxed), total, last }
    }
}
