//! The health of a target, derived from the latest connection attempts.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::wire_enum::wire_enum;

wire_enum!(
    /// The health of a target.
    TargetHealth {
        /// The target answers.
        Ok => "ok",
        /// The last attempt to reach the target failed. agtmux still shows the last known states of its agents.
        Degraded => "degraded",
        /// Several attempts to reach the target failed within 30 seconds. Its agents are `unknown`.
        Down => "down",
    }
);

wire_enum!(
    /// Why a target is not healthy.
    TargetFault {
        /// `ssh` could not reach the host.
        Unreachable => "unreachable",
        /// The host refused the `ssh` login.
        LoginRefused => "refused",
        /// The host was connected but no longer answers.
        NoResponse => "silent",
        /// The connection ended.
        Disconnected => "cut",
        /// The host runs an incompatible version of agtmux.
        VersionMismatch => "mismatch",
        /// Neither tmux nor agtmux is installed on the host.
        NothingInstalled => "nothing_there",
    }
);

/// This many failures within `FAILURE_WINDOW` mark the target as down.
const DOWN_AFTER_FAILURES: usize = 3;
const FAILURE_WINDOW: SignedDuration = SignedDuration::from_secs(30);
/// This many successes in a row mark the target as ok.
const OK_AFTER_SUCCESSES: u32 = 2;

/// The outcomes of the latest attempts to reach a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetHealthLog {
    health: TargetHealth,
    failures: VecDeque<Timestamp>,
    successes: u32,
}

impl Default for TargetHealthLog {
    /// Starts as degraded, because no attempt has been made yet.
    fn default() -> Self {
        Self { health: TargetHealth::Degraded, failures: VecDeque::new(), successes: 0 }
    }
}

impl TargetHealthLog {
    pub fn health(&self) -> TargetHealth {
        self.health
    }

    /// Records a failed attempt and returns the new health.
    pub fn record_failure(&mut self, now: Timestamp) -> TargetHealth {
        self.successes = 0;
        self.failures.push_back(now);
        self.failures.retain(|at| now.duration_since(*at) <= FAILURE_WINDOW);
        if self.failures.len() > DOWN_AFTER_FAILURES {
            self.failures.pop_front();
        }
        self.health = match self.health {
            // Only successes end `down`, regardless of the time between attempts.
            TargetHealth::Down => TargetHealth::Down,
            _ if self.failures.len() >= DOWN_AFTER_FAILURES => TargetHealth::Down,
            _ => TargetHealth::Degraded,
        };
        self.health
    }

    pub fn record_success(&mut self) -> TargetHealth {
        self.successes = self.successes.saturating_add(1);
        if self.successes >= OK_AFTER_SUCCESSES {
            self.failures.clear();
            self.health = TargetHealth::Ok;
        }
        self.health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1000 + second).expect("in range")
    }

    fn healthy() -> TargetHealthLog {
        let mut log = TargetHealthLog::default();
        log.record_success();
        assert_eq!(log.record_success(), TargetHealth::Ok);
        log
    }

    #[test]
    fn three_failures_within_30_seconds_mark_the_target_down() {
        let mut log = healthy();
        assert_eq!(log.record_failure(at(0)), TargetHealth::Degraded);
        assert_eq!(log.record_failure(at(10)), TargetHealth::Degraded);
        assert_eq!(log.record_failure(at(30)), TargetHealth::Down);
    }

    #[test]
    fn failures_outside_the_window_do_not_add_up() {
        let mut log = healthy();
        for n in 0..10 {
            assert_eq!(log.record_failure(at(n * 16)), TargetHealth::Degraded, "failure {n}");
        }
    }

    #[test]
    fn two_successes_in_a_row_restore_ok() {
        let mut log = healthy();
        for n in 0..5 {
            log.record_failure(at(n));
        }
        assert_eq!(log.record_success(), TargetHealth::Down);
        assert_eq!(log.record_failure(at(6)), TargetHealth::Down);
        assert_eq!(log.record_success(), TargetHealth::Down);
        assert_eq!(log.record_success(), TargetHealth::Ok);
        assert_eq!(log.record_failure(at(100)), TargetHealth::Degraded, "earlier failures are cleared");
    }

    #[test]
    fn a_down_target_stays_down_after_a_long_pause() {
        let mut log = healthy();
        for n in 0..3 {
            log.record_failure(at(n));
        }
        assert_eq!(log.record_failure(at(500)), TargetHealth::Down);
    }
}
