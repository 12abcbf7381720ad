//! How much is sent.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct LoadBenchPlan {
    pub(crate) runtimes: usize,
    /// Events per second.
    pub(crate) rate: usize,
    /// Each sends its next event when the last one is acknowledged. A divisor of the runtimes, so that the events of a
    /// runtime all go over the same one and come in order.
    pub(crate) connections: usize,
    pub(crate) duration: Duration,
    pub(crate) baseline_duration: Duration,
    pub(crate) writes_document: bool,
}

impl LoadBenchPlan {
    pub(crate) fn from_args() -> Self {
        let quick = std::env::args().any(|arg| arg == "--quick") || std::env::var_os("AGTMUX_BENCH_QUICK").is_some();
        let (lasts, baseline) = if quick { (5, 2) } else { (60, 20) };
        Self {
            runtimes: 200,
            rate: 2000,
            connections: 20,
            duration: Duration::from_secs(lasts),
            baseline_duration: Duration::from_secs(baseline),
            writes_document: !quick,
        }
    }
}
