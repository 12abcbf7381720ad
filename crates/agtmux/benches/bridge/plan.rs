//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct BridgeBenchPlan {
    pub(crate) agents: usize,
    /// Each turn of an agent causes two hooks and five events.
    pub(crate) hooks_per_second: f64,
    pub(crate) readers: usize,
    pub(crate) stalled: usize,
    pub(crate) duration: Duration,
    pub(crate) baseline_duration: Duration,
    pub(crate) writes_document: bool,
}

impl BridgeBenchPlan {
    pub(crate) fn from_args() -> Self {
        let quick = crate::bench_report::is_quick();
        let (hooks_per_second, lasts, baseline) = if quick { (20.0, 4, 2) } else { (200.0, 60, 15) };
        Self {
            agents: 10,
            hooks_per_second,
            readers: 190,
            stalled: 10,
            duration: Duration::from_secs(lasts),
            baseline_duration: Duration::from_secs(baseline),
            writes_document: !quick,
        }
    }
}
