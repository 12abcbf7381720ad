//! When a host is asked again: once a second while something happens there, more rarely while nothing does.

use std::time::{Duration, Instant};

use crate::patience::ASKED_EVERY;

const BUSY: Duration = Duration::from_secs(1);
/// What has been quiet for so long is asked so often.
const QUIET: [(Duration, Duration); 2] =
    [(Duration::from_secs(120), Duration::from_secs(3)), (Duration::from_secs(30), Duration::from_secs(2))];
/// A question that takes its time earns a rest of as much.
const REST: u32 = 2;

/// The processes are listed this often while panes write, and this often in any case: a job of a script begins and ends
/// without a word.
const WHILE_WRITING: Duration = Duration::from_secs(5);
const AT_LEAST: Duration = Duration::from_secs(30);
/// A job that has just begun may still look like its shell, and one that ends takes a moment.
const ECHOES: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(2500)];

#[derive(Debug)]
pub(super) struct Pace {
    changed_at: Instant,
    next_at: Instant,
    heard_at: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { changed_at: now, next_at: now, heard_at: now }
    }

    /// Something is different, or is about to be.
    pub(super) fn stir(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// Somebody has done something there.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.stir(now);
        self.next_at = self.next_at.min(now);
    }

    pub(super) fn asked(&mut self, began: Instant, now: Instant) {
        let quiet = now.saturating_duration_since(self.changed_at);
        let step = QUIET.iter().find(|(least, _)| quiet >= *least).map_or(BUSY, |(_, step)| *step);
        let rest = now.saturating_duration_since(began) * REST;
        self.next_at = began + step.max(rest);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_at <= now
    }

    /// It has answered, whatever the question was.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// Whether it has to be asked if it is there at all: one that is given its rest is not to be gone unnoticed.
    pub(super) fn wants_a_word(&self, now: Instant) -> bool {
        now >= self.heard_at + ASKED_EVERY
    }

    pub(super) fn wake_at(&self) -> Instant {
        self.next_at.min(self.heard_at + ASKED_EVERY)
    }
}

/// When the processes of a host are listed.
#[derive(Debug)]
pub(super) struct Census {
    taken_at: Option<Instant>,
    disturbed: bool,
    echoes: Vec<Instant>,
    wrote: bool,
}

impl Census {
    pub(super) fn new() -> Self {
        Self { taken_at: None, disturbed: true, echoes: Vec::new(), wrote: false }
    }

    /// A pane has come, or something else has its terminal.
    pub(super) fn disturb(&mut self, now: Instant) {
        self.disturbed = true;
        self.echoes = ECHOES.map(|echo| now + echo).into();
    }

    pub(super) fn wrote(&mut self) {
        self.wrote = true;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Some(taken) = self.taken_at else { return true };
        let rest = if self.wrote { WHILE_WRITING } else { AT_LEAST };
        self.disturbed || self.echoes.iter().any(|at| *at <= now) || now >= taken + rest
    }

    /// When it is worth waking up for; all else comes along with the next question.
    pub(super) fn urgent_at(&self) -> Option<Instant> {
        self.echoes.iter().min().copied()
    }

    pub(super) fn taken(&mut self, now: Instant) {
        (self.taken_at, self.disturbed, self.wrote) = (Some(now), false, false);
        self.echoes.retain(|at| *at > now);
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
        let mut pace = Pace::new(start);
        let mut asked = Vec::new();
        for ms in (0..200_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            if ms == 190_000 {
                pace.hurry(now);
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
        let mut pace = Pace::new(start);
        pace.asked(start, start + secs(2));
        assert_eq!(pace.next_at, start + secs(4));
    }

    #[test]
    fn a_host_at_rest_is_still_asked_whether_it_is_there() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let answered = start + secs(8);
        pace.heard(answered);
        pace.asked(start, answered);
        assert_eq!(pace.wake_at(), answered + ASKED_EVERY, "it rests for longer");
        assert!(!pace.is_due(pace.wake_at()) && pace.wants_a_word(pace.wake_at()));
        pace.heard(pace.wake_at());
        assert!(!pace.wants_a_word(pace.wake_at() - secs(1)));
    }

    #[test]
    fn processes_are_listed_when_something_has_changed_and_again_a_moment_later() {
        let start = Instant::now();
        let mut census = Census::new();
        let mut taken = Vec::new();
        for ms in (0..100_000).step_by(100) {
            let now = start + Duration::from_millis(ms);
            match ms {
                10_000 => census.disturb(now),
                50_000.. => census.wrote(),
                _ => {}
            }
            if census.is_due(now) {
                taken.push(ms);
                census.taken(now);
            }
        }
        assert_eq!(taken[..5], [0, 10_000, 10_400, 12_500, 42_500]);
        assert_eq!(taken[5..7], [50_000, 55_000], "{taken:?}");
    }
}
