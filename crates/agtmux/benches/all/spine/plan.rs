//! The size of the benchmark.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct SpineBenchPlan {
    pub(crate) sizes: &'static [usize],
    /// How often each list command is timed: `tmux list-panes`, `agtmux list` with all panes, and `agtmux list` with
    /// agents only.
    pub(crate) list_pairs: usize,
    /// The number of rounds. Each round makes every kind of change once.
    pub(crate) lag_rounds: usize,
    /// How long to wait until the daemon is idle. The daemon checks an idle server less and less often; the last check
    /// comes after a minute.
    pub(crate) settle: Duration,
    pub(crate) idle_window: Duration,
    pub(crate) busy_rounds: usize,
    pub(crate) busy_window: Duration,
}

impl SpineBenchPlan {
    pub(crate) const FULL: Self = Self {
        sizes: &[10, 100, 500, 1000],
        list_pairs: 40,
        lag_rounds: 15,
        settle: Duration::from_secs(66),
        idle_window: Duration::from_secs(20),
        busy_rounds: 3,
        busy_window: Duration::from_secs(5),
    };

    pub(crate) const QUICK: Self = Self {
        sizes: &[10, 100],
        list_pairs: 20,
        lag_rounds: 2,
        settle: Duration::from_secs(8),
        idle_window: Duration::from_secs(5),
        busy_rounds: 1,
        busy_window: Duration::from_secs(3),
    };
}
