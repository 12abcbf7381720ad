//! When a host is asked again: once a second while something happens there, more rarely while nothing does.

use std::time::{Duration, Instant};

use crate::remote_timeouts::PING_INTERVAL;

const BUSY_INTERVAL: Duration = Duration::from_secs(1);
/// What has been quiet for so long is asked so often.
const QUIET_INTERVALS: [(Duration, Duration); 2] =
    [(Duration::from_secs(120), Duration::from_secs(3)), (Duration::from_secs(30), Duration::from_secs(2))];
/// A question that takes its time earns a rest of as much.
const REST_FACTOR: u32 = 2;

/// The processes are listed this often while panes write, and this often in any case: a job of a script begins and ends
/// without a word.
const WRITING_INTERVAL: Duration = Duration::from_secs(5);
const MAX_INTERVAL: Duration = Duration::from_secs(30);
/// A job that has just begun may still look like its shell, and one that ends takes a moment.
const FOLLOW_UPS: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(2500)];

#[derive(Debug)]
pub(super) struct HostSchedule {
    changed_at: Instant,
    next_at: Instant,
    answered_at: Instant,
}

impl HostSchedule {
    pub(super) fn new(now: Instant) -> Self {
        Self { changed_at: now, next_at: now, answered_at: now }
    }

    /// Something is different, or is about to be.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// Somebody has done something there.
    pub(super) fn ask_soon(&mut self, now: Instant) {
        self.note_change(now);
        self.next_at = self.next_at.min(now);
    }

    pub(super) fn asked(&mut self, began: Instant, now: Instant) {
        let quiet = now.saturating_duration_since(self.changed_at);
        let step = QUIET_INTERVALS.iter().find(|(least, _)| quiet >= *least).map_or(BUSY_INTERVAL, |(_, step)| *step);
        let rest = now.saturating_duration_since(began) * REST_FACTOR;
        self.next_at = began + step.max(rest);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_at <= now
    }

    /// It has answered, whatever the question was.
    pub(super) fn note_answer(&mut self, now: Instant) {
        self.answered_at = now;
    }

    /// Whether it has to be asked if it is there at all: one that is given its rest is not to be gone unnoticed.
    pub(super) fn needs_ping(&self, now: Instant) -> bool {
        now >= self.answered_at + PING_INTERVAL
    }

    pub(super) fn wake_at(&self) -> Instant {
        self.next_at.min(self.answered_at + PING_INTERVAL)
    }
}

/// When the processes of a host are listed.
#[derive(Debug)]
pub(super) struct ProcessSchedule {
    listed_at: Option<Instant>,
    requested: bool,
    follow_ups: Vec<Instant>,
    wrote: bool,
}

impl ProcessSchedule {
    pub(super) fn new() -> Self {
        Self { listed_at: None, requested: true, follow_ups: Vec::new(), wrote: false }
    }

    /// A pane has come, or something else has its terminal.
    pub(super) fn request(&mut self, now: Instant) {
        self.requested = true;
        self.follow_ups = FOLLOW_UPS.map(|echo| now + echo).into();
    }

    pub(super) fn note_output(&mut self) {
        self.wrote = true;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Some(taken) = self.listed_at else { return true };
        let rest = if self.wrote { WRITING_INTERVAL } else { MAX_INTERVAL };
        self.requested || self.follow_ups.iter().any(|at| *at <= now) || now >= taken + rest
    }

    /// When it is worth waking up for; all else comes along with the next question.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        self.follow_ups.iter().min().copied()
    }

    pub(super) fn note_listed(&mut self, now: Instant) {
        (self.listed_at, self.requested, self.wrote) = (Some(now), false, false);
        self.follow_ups.retain(|at| *at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_quiet_host_is_asked_more_rarely_and_a_busy_one_every_second() {
        let start = Instant::now();
        let mut pace = HostSchedule::new(start);
        let mut asked = Vec::new();
        for ms in (0..200_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            if ms == 190_000 {
                pace.ask_soon(now);
            }
            if pace.is_due(now) {
                asked.push(ms / 1000);
                pace.asked(now, now);
            }
        }
        assert_eq!(asked[..4], [0, 1, 2, 3]);
        assert!(asked.contains(&30) && asked.contains(&32) && !asked.contains(&31), "{asked:?}");
        assert!(asked.contains(&120) && asked.contains(&123) && !asked.contains(&121), "{asked:?}");
        assert!(asked.ends_with(&[190, 191, 192, 193, 194, 195, 196, 197, 198, 199]), "{asked:?}");
    }

    #[test]
    fn a_slow_host_gets_its_rest() {
        let start = Instant::now();
        let mut pace = HostSchedule::new(start);
        pace.asked(start, start + secs(2));
        assert_eq!(pace.next_at, start + secs(4));
    }

    #[test]
    fn a_host_at_rest_is_still_asked_whether_it_is_there() {
        let start = Instant::now();
        let mut pace = HostSchedule::new(start);
        let answered = start + secs(8);
        pace.note_answer(answered);
        pace.asked(start, answered);
        assert_eq!(pace.wake_at(), answered + PING_INTERVAL, "it rests for longer");
        assert!(!pace.is_due(pace.wake_at()) && pace.needs_ping(pace.wake_at()));
        pace.note_answer(pace.wake_at());
        assert!(!pace.needs_ping(pace.wake_at() - secs(1)));
    }

    #[test]
    fn processes_are_listed_when_something_has_changed_and_again_a_moment_later() {
        let start = Instant::now();
        let mut census = ProcessSchedule::new();
        let mut taken = Vec::new();
        for ms in (0..100_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            match ms {
                10_000 => census.request(now),
                50_000.. => census.note_output(),
                _ => {}
            }
            if census.is_due(now) {
                taken.push(ms);
                census.note_listed(now);
            }
        }
        assert_eq!(taken[..5], [0, 10_000, 10_400, 12_500, 42_500]);
        assert_eq!(taken[5..7], [50_000, 55_000], "{taken:?}");
    }
}
