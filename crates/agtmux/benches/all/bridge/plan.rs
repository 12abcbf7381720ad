//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct BridgeBenchPlan {
    pub(crate) agents: usize,
    /// The number of hooks per second of all agents together. Each turn of an agent causes two hooks and five events.
    pub(crate) hooks_per_second: f64,
    pub(crate) readers: usize,
    pub(crate) stalled: usize,
    pub(crate) duration: Duration,
    pub(crate) baseline_duration: Duration,
}

impl BridgeBenchPlan {
    pub(crate) fn new(hooks_per_second: f64, seconds: u64, baseline_seconds: u64) -> Self {
        Self {
            agents: 10,
            hooks_per_second,
            readers: 190,
            stalled: 10,
            duration: Duration::from_secs(seconds),
            baseline_duration: Duration::from_secs(baseline_seconds),
        }
    }
}
