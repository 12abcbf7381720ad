//! The daemon's own time: it starts where the wall clock stands and never jumps, whatever happens to that clock.

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

    /// In whole microseconds, as times are stored: a replay must not see another time than the first run did.
    pub(crate) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        let now = self.base.checked_add(passed).unwrap_or(Timestamp::MAX);
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// The moment at which this clock will show that time.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let from_start = at.duration_since(self.base).max(SignedDuration::ZERO);
        self.started + from_start.unsigned_abs()
    }
}
