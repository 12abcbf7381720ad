//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct LoadBenchPlan {
    pub(crate) runtimes: usize,
    /// Events per second.
    pub(crate) rate: usize,
    /// The number of connections. Each one sends its next event after the last one is acknowledged. The number of
    /// runtimes is a multiple of it, so that all events of a runtime use one connection and stay in order.
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
