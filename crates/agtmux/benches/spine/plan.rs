//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct SpineBenchPlan {
    pub(crate) sizes: Vec<usize>,
    /// Pairs of one `tmux list-panes` and one `agtmux list`.
    pub(crate) list_pairs: usize,
    /// The number of rounds. Each round makes every kind of change once.
    pub(crate) lag_rounds: usize,
    /// The time until the daemon is idle: it checks an idle server less and less often, for the last time after a
    /// minute.
    pub(crate) settle: Duration,
    pub(crate) idle_window: Duration,
    pub(crate) busy_rounds: usize,
    pub(crate) busy_window: Duration,
    pub(crate) writes_document: bool,
}

impl SpineBenchPlan {
    pub(crate) fn from_args() -> Self {
        let quick = std::env::args().any(|arg| arg == "--quick") || std::env::var_os("AGTMUX_BENCH_QUICK").is_some();
        if quick { Self::quick() } else { Self::full() }
    }

    fn full() -> Self {
        Self {
            sizes: vec![10, 100, 500, 1000],
            list_pairs: 40,
            lag_rounds: 15,
            settle: Duration::from_secs(66),
            idle_window: Duration::from_secs(20),
            busy_rounds: 3,
            busy_window: Duration::from_secs(5),
            writes_document: true,
        }
    }

    fn quick() -> Self {
        Self {
            sizes: vec![10, 100],
            list_pairs: 20,
            lag_rounds: 2,
            settle: Duration::from_secs(8),
            idle_window: Duration::from_secs(5),
            busy_rounds: 1,
            busy_window: Duration::from_secs(3),
            writes_document: false,
        }
    }
}
