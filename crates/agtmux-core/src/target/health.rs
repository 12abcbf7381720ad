//! How a target fares, by what became of the last attempts to reach it.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::wire_enum::wire_enum;

wire_enum!(
    /// How a target fares.
    TargetHealth {
        /// It answers.
        Ok => "ok",
        /// It failed a moment ago. What was known of it is still shown.
        Degraded => "degraded",
        /// It failed several times within half a minute: its agents are unknown.
        Down => "down",
    }
);

wire_enum!(
    /// What kind of trouble a target is in.
    TargetFault {
        /// `ssh` could not get there.
        Unreachable => "unreachable",
        /// `ssh` got there and was not let in.
        LoginRefused => "refused",
        /// It was there and answers no more.
        NoResponse => "silent",
        /// The channel ended.
        Disconnected => "cut",
        /// Its agtmux is another version, or speaks another language.
        VersionMismatch => "mismatch",
        /// No tmux and no agtmux there.
        NothingInstalled => "nothing_there",
    }
);

/// So many failures within this time and it is down.
const DOWN_AFTER_FAILURES: usize = 3;
const FAILURE_WINDOW: SignedDuration = SignedDuration::from_secs(30);
/// So many successes in a row and it is well again.
const OK_AFTER_SUCCESSES: u32 = 2;

/// What became of the last attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetHealthLog {
    health: TargetHealth,
    failures: VecDeque<Timestamp>,
    successes: u32,
}

impl Default for TargetHealthLog {
    /// Nobody has tried yet: there is nothing that could be trusted.
    fn default() -> Self {
        Self { health: TargetHealth::Degraded, failures: VecDeque::new(), successes: 0 }
    }
}

impl TargetHealthLog {
    pub fn health(&self) -> TargetHealth {
        self.health
    }

    /// Says what it is now.
    pub fn record_failure(&mut self, now: Timestamp) -> TargetHealth {
        self.successes = 0;
        self.failures.push_back(now);
        self.failures.retain(|at| now.duration_since(*at) <= FAILURE_WINDOW);
        if self.failures.len() > DOWN_AFTER_FAILURES {
            self.failures.pop_front();
        }
        self.health = match self.health {
            // What is down stays down until it answers again, however long it takes between the attempts.
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

    fn well() -> TargetHealthLog {
        let mut log = TargetHealthLog::default();
        log.record_success();
        assert_eq!(log.record_success(), TargetHealth::Ok);
        log
    }

    #[test]
    fn three_failures_within_half_a_minute_are_down() {
        let mut log = well();
        assert_eq!(log.record_failure(at(0)), TargetHealth::Degraded);
        assert_eq!(log.record_failure(at(10)), TargetHealth::Degraded);
        assert_eq!(log.record_failure(at(30)), TargetHealth::Down);
    }

    #[test]
    fn failures_that_are_far_apart_do_not_add_up() {
        let mut log = well();
        for n in 0..10 {
            assert_eq!(log.record_failure(at(n * 16)), TargetHealth::Degraded, "failure {n}");
        }
    }

    #[test]
    fn two_successes_in_a_row_make_it_well() {
        let mut log = well();
        for n in 0..5 {
            log.record_failure(at(n));
        }
        assert_eq!(log.record_success(), TargetHealth::Down);
        assert_eq!(log.record_failure(at(6)), TargetHealth::Down);
        assert_eq!(log.record_success(), TargetHealth::Down);
        assert_eq!(log.record_success(), TargetHealth::Ok);
        assert_eq!(log.record_failure(at(100)), TargetHealth::Degraded, "what was is forgiven");
    }

    #[test]
    fn what_is_down_stays_down_however_long_nobody_tries() {
        let mut log = well();
        for n in 0..3 {
            log.record_failure(at(n));
        }
        assert_eq!(log.record_failure(at(500)), TargetHealth::Down);
    }
}
