//! Decides which of two events from one source is newer.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The longest plausible time between an event and its arrival. If the claimed time of an event is further in the past,
/// the arrival time is used instead, because the clock of the sender may be wrong.
const MAX_CLOCK_LAG: SignedDuration = SignedDuration::from_secs(10);

/// Decides which of two events of one source is newer. If both events have a sequence number, these numbers are
/// compared first. If that does not decide, the event times are compared, then the arrival times, then the ids. Two
/// events never have the same id, so every replay decides the same way.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderKey {
    pub source_seq: Option<u64>,
    pub event_time: Timestamp,
    pub ingested_at: Timestamp,
    pub event_id: String,
}

impl OrderKey {
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Greater
    }

    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        [&mut self.event_time, &mut self.ingested_at].into_iter()
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_number = match (self.source_seq, other.source_seq) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        };
        by_number
            .then_with(|| self.event_time.cmp(&other.event_time))
            .then_with(|| self.ingested_at.cmp(&other.ingested_at))
            .then_with(|| self.event_id.cmp(&other.event_id))
    }
}

/// Returns the claimed event time, or the arrival time if the claimed time is missing, in the future or too old.
pub fn trusted_time(claimed: Option<Timestamp>, ingested_at: Timestamp) -> Timestamp {
    match claimed {
        Some(time) if time <= ingested_at && ingested_at.duration_since(time) <= MAX_CLOCK_LAG => time,
        _ => ingested_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn key(seq: Option<u64>, time: i64, id: &str) -> OrderKey {
        OrderKey { source_seq: seq, event_time: at(time), ingested_at: at(100), event_id: id.into() }
    }

    #[test]
    fn source_sequence_numbers_take_precedence_over_time() {
        assert!(key(Some(2), 1, "a").is_newer_than(&key(Some(1), 9, "b")));
        assert!(key(None, 9, "a").is_newer_than(&key(Some(7), 1, "b")));
        assert!(key(Some(1), 5, "b").is_newer_than(&key(Some(1), 5, "a")));
        assert!(!key(Some(1), 5, "a").is_newer_than(&key(Some(1), 5, "a")));
    }

    #[test]
    fn event_times_from_a_wrong_clock_are_ignored() {
        assert_eq!(trusted_time(Some(at(95)), at(100)), at(95));
        assert_eq!(trusted_time(Some(at(80)), at(100)), at(100));
        assert_eq!(trusted_time(Some(at(100 + 86_400)), at(100)), at(100), "a day ahead");
        assert_eq!(trusted_time(None, at(100)), at(100));
    }
}
