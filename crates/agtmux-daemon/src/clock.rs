//! The daemon's clock. It starts at the wall-clock time. Later changes of the wall clock do not affect it.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Timestamp,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { base: Timestamp::now(), started: Instant::now() }
    }

    /// The current time in whole microseconds. The store keeps times in microseconds, too, so a replay sees exactly the
    /// times that the daemon saw.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = self.base.checked_add(passed).unwrap_or(Timestamp::MAX);
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// The `Instant` at which this clock shows `at`.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let from_start = at.duration_since(self.base).max(SignedDuration::ZERO);
        self.started + from_start.unsigned_abs()
    }
}
