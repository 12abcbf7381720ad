//! When to poll an agentless host: once a second while something changes, less often while nothing does.

use std::time::{Duration, Instant};

use crate::remote::timeouts::PING_INTERVAL;

const BUSY_INTERVAL: Duration = Duration::from_secs(1);
/// Each pair is a time without changes and the poll interval that applies after that time.
const QUIET_INTERVALS: [(Duration, Duration); 2] =
    [(Duration::from_secs(120), Duration::from_secs(3)), (Duration::from_secs(30), Duration::from_secs(2))];
/// After a slow poll the host rests: the interval is at least this many times the duration of the poll.
const REST_FACTOR: u32 = 2;

/// The longest time between two process listings while panes write. `MAX_INTERVAL` is the same limit while no pane
/// writes, because a script can start and end jobs without output.
const WRITING_INTERVAL: Duration = Duration::from_secs(5);
const MAX_INTERVAL: Duration = Duration::from_secs(30);
/// How long after a change the processes are listed again. A new job still looks like its shell for a moment, and a job
/// takes a moment to end.
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

    /// Notes that something on the host has changed or will change soon.
    pub(super) fn note_change(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// Makes a poll due at once, because an action ran on the host.
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

    /// Notes that the host answered a request of any kind.
    pub(super) fn note_answer(&mut self, now: Instant) {
        self.answered_at = now;
    }

    /// Whether the host must be pinged. Without pings, the loss of a host that is polled rarely would be noticed too
    /// late.
    pub(super) fn needs_ping(&self, now: Instant) -> bool {
        now >= self.answered_at + PING_INTERVAL
    }

    pub(super) fn wake_at(&self) -> Instant {
        self.next_at.min(self.answered_at + PING_INTERVAL)
    }
}

/// When to list the processes of a host.
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

    /// Requests a listing, because a pane is new or runs another program.
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

    /// When to wake up for a follow-up listing. All other listings wait for the next poll.
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
    fn a_quiet_host_is_polled_less_often_and_a_busy_one_every_second() {
        let start = Instant::now();
        let mut schedule = HostSchedule::new(start);
        let mut asked = Vec::new();
        for ms in (0..200_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            if ms == 190_000 {
                schedule.ask_soon(now);
            }
            if schedule.is_due(now) {
                asked.push(ms / 1000);
                schedule.asked(now, now);
            }
        }
        assert_eq!(asked[..4], [0, 1, 2, 3]);
        assert!(asked.contains(&30) && asked.contains(&32) && !asked.contains(&31), "{asked:?}");
        assert!(asked.contains(&120) && asked.contains(&123) && !asked.contains(&121), "{asked:?}");
        assert!(asked.ends_with(&[190, 191, 192, 193, 194, 195, 196, 197, 198, 199]), "{asked:?}");
    }

    #[test]
    fn a_slow_host_is_polled_less_often() {
        let start = Instant::now();
        let mut schedule = HostSchedule::new(start);
        schedule.asked(start, start + secs(2));
        assert_eq!(schedule.next_at, start + secs(4));
    }

    #[test]
    fn a_resting_host_is_still_pinged() {
        let start = Instant::now();
        let mut schedule = HostSchedule::new(start);
        let answered = start + secs(8);
        schedule.note_answer(answered);
        schedule.asked(start, answered);
        assert_eq!(schedule.wake_at(), answered + PING_INTERVAL, "the next poll is later than the ping");
        assert!(!schedule.is_due(schedule.wake_at()) && schedule.needs_ping(schedule.wake_at()));
        schedule.note_answer(schedule.wake_at());
        assert!(!schedule.needs_ping(schedule.wake_at() - secs(1)));
    }

    #[test]
    fn processes_are_listed_after_a_change_and_again_shortly_after() {
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
