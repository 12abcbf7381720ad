//! Notices that the machine woke up from sleep. The daemon may resume before the tmux server and the agents do. Right
//! after a wake-up, a single failed check therefore proves nothing.

use std::time::{Duration, Instant};

use crate::clock::{Clock, SleepDetector};

/// For this long after the machine wakes up, a server that does not answer is queried again instead of being reported
/// as an outage.
const WAKE_TIME: Duration = Duration::from_secs(2);

pub(super) struct WakeWatch {
    sleep_detector: SleepDetector,
    woke_at: Option<Instant>,
}

impl WakeWatch {
    pub(super) fn new(clock: Clock) -> Self {
        Self { sleep_detector: SleepDetector::new(clock), woke_at: None }
    }

    /// Whether the machine woke up since the last call.
    pub(super) fn has_woken(&mut self, now: Instant) -> bool {
        let has_woken = self.sleep_detector.slept().is_some();
        if has_woken {
            self.woke_at = Some(now);
        }
        has_woken
    }

    /// Whether the machine woke up a moment ago.
    pub(super) fn is_waking(&self, now: Instant) -> bool {
        self.woke_at.is_some_and(|at| now < at + WAKE_TIME)
    }
}
