//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct LoadBenchPlan {
    pub(crate) runtimes: usize,
    /// Events per second.
    pub(crate) rate: usize,
    /// The number of connections. A connection sends its next event when the previous one is acknowledged. The number
    /// of runtimes is a multiple of the number of connections, so that all events of a runtime use the same connection
    /// and stay in order.
    pub(crate) connections: usize,
    pub(crate) duration: Duration,
    pub(crate) baseline_duration: Duration,
}

impl LoadBenchPlan {
    pub(crate) fn new(seconds: u64, baseline_seconds: u64) -> Self {
        Self {
            runtimes: 200,
            rate: 2000,
            connections: 20,
            duration: Duration::from_secs(seconds),
            baseline_duration: Duration::from_secs(baseline_seconds),
        }
    }
}
