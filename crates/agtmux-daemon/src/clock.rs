//! The daemon's clock. It shows the time of the wall clock. When the wall clock is set, the daemon's clock follows in
//! one step, and the engine moves all recorded times by the same step. The age of a record therefore does not change,
//! and no recorded time lies in the future.

mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use source::TestTime;
use source::{SystemTime, TimeSource};

/// The daemon's clock ignores differences from the wall clock that are smaller than this, because time servers make
/// small corrections all the time.
const MIN_STEP: SignedDuration = SignedDuration::from_secs(1);

/// How often the engine calls [`Clock::plan_beat`] while it has agents. Also how often the observers check their
/// servers.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// The engine processes one batch of inputs in less time than this, even if the disk is slow.
pub(crate) const LONGEST_STEP: Duration = Duration::from_secs(30);
/// If the engine is later than planned by more than this, the machine slept or the daemon was stopped. A busy machine
/// causes a shorter delay.
const MAX_DELAY: SignedDuration = SignedDuration::from_secs(2);

/// Copies of a clock always show the same time.
#[derive(Clone)]
pub(crate) struct Clock(Arc<SharedClock>);

struct SharedClock {
    source: Box<dyn TimeSource>,
    first_beat: Instant,
    setting: Mutex<ClockSetting>,
}

struct ClockSetting {
    /// The wall-clock time at which the machine booted, computed from the current setting of this clock.
    booted_at: SignedDuration,
    /// The sum of the clock steps that the engine has not applied to its times yet.
    pending_step: SignedDuration,
    /// The sum of all clock steps since the daemon started.
    total_step: SignedDuration,
    /// The latest time at which the engine plans to run next, as a time since boot. `None` if the engine plans no run.
    beat_at: Option<SignedDuration>,
    /// The sum of all times during which the daemon did not run.
    total_sleep: SignedDuration,
}

/// The clock setting that was valid when the stored times were recorded. The next daemon compares this setting with its
/// own, and so learns by how much the clock was set in the meantime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockAnchor {
    /// Identifies one boot of the machine. `None` if the system reports no boot id.
    boot: Option<String>,
    /// The wall-clock time at which the machine booted, in microseconds.
    booted_at: i64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self::with_source(Box::new(SystemTime::from_env()))
    }

    fn with_source(source: Box<dyn TimeSource>) -> Self {
        let (booted_at, _) = read(&*source);
        let zero = SignedDuration::ZERO;
        let setting =
            ClockSetting { booted_at, pending_step: zero, total_step: zero, beat_at: None, total_sleep: zero };
        Self(Arc::new(SharedClock { source, first_beat: Instant::now(), setting: Mutex::new(setting) }))
    }

    /// The current time in whole microseconds. The store also uses whole microseconds, so a replay sees exactly the
    /// times that the daemon saw.
    pub(crate) fn now(&self) -> Timestamp {
        self.read().1
    }

    /// The current time, and the steps of the clock since the last call. Only the engine may call this: each step is
    /// returned once, and the engine applies it to all times that it knows.
    pub(crate) fn now_and_step(&self) -> (Timestamp, Option<SignedDuration>) {
        let (mut setting, now) = self.read();
        let step = std::mem::replace(&mut setting.pending_step, SignedDuration::ZERO);
        (now, Some(step).filter(|step| !step.is_zero()))
    }

    /// The sum of all clock steps so far. If this sum has changed between two wall-clock times, a caller must not
    /// compare those times directly.
    pub(crate) fn total_step(&self) -> SignedDuration {
        self.read().0.total_step
    }

    /// The time of the next beat. All users of this clock share the beats, so that an idle daemon wakes up once for all
    /// of them.
    pub(crate) fn next_beat(&self, now: Instant) -> Instant {
        next_beat(self.0.first_beat, now)
    }

    /// The engine calls this to announce that it will call again within this time. If the next call comes too late, the
    /// machine slept or the daemon was stopped. With `None`, the next call may come at any time.
    pub(crate) fn plan_beat(&self, within: Option<Duration>) {
        let (mut setting, since_boot) = self.check_beat();
        setting.beat_at = within.map(|within| since_boot + SignedDuration::try_from(within).unwrap_or_default());
    }

    fn total_sleep(&self) -> SignedDuration {
        self.check_beat().0.total_sleep
    }

    fn check_beat(&self) -> (MutexGuard<'_, ClockSetting>, SignedDuration) {
        let mut setting = self.0.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let since_boot = self.0.source.since_boot();
        let late = setting.beat_at.map_or(SignedDuration::ZERO, |beat_at| since_boot - beat_at);
        if late > MAX_DELAY {
            setting.total_sleep += late;
            setting.beat_at = Some(since_boot);
        }
        (setting, since_boot)
    }

    /// The `Instant` at which this clock shows `at`, or the current `Instant` if `at` is in the past.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let left = at.duration_since(self.now()).max(SignedDuration::ZERO);
        Instant::now() + left.unsigned_abs()
    }

    pub(crate) fn anchor(&self) -> ClockAnchor {
        let booted_at = i64::try_from(self.read().0.booted_at.as_micros()).unwrap_or(i64::MAX);
        ClockAnchor { boot: self.0.source.boot_id(), booted_at }
    }

    /// Returns by how much the clock was set since the anchor `stored` was recorded.
    ///
    /// After a reboot, the exact step is unknown. The result is then zero, unless the newest stored time, `newest`,
    /// lies in the future. In that case the result is the step that moves `newest` to now.
    ///
    /// The result includes the steps that this clock has noticed so far, so [`Self::now_and_step`] does not report them
    /// again.
    pub(crate) fn take_step_since(&self, stored: Option<&ClockAnchor>, newest: Option<Timestamp>) -> SignedDuration {
        self.now_and_step();
        let anchor = self.anchor();
        let step = match stored.filter(|stored| stored.boot.is_some() && stored.boot == anchor.boot) {
            Some(stored) => SignedDuration::from_micros(anchor.booted_at.saturating_sub(stored.booted_at)),
            None => {
                let now = self.now();
                newest.map_or(SignedDuration::ZERO, |newest| now.duration_since(newest).min(SignedDuration::ZERO))
            }
        };
        if step.abs() >= MIN_STEP { step } else { SignedDuration::ZERO }
    }

    /// Reads the time, and notes a step if the wall clock was set.
    fn read(&self) -> (MutexGuard<'_, ClockSetting>, Timestamp) {
        let mut setting = self.0.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let (booted_at, since_boot) = read(&*self.0.source);
        let step = booted_at - setting.booted_at;
        if step.abs() >= MIN_STEP {
            setting.booted_at = booted_at;
            setting.pending_step += step;
            setting.total_step += step;
        }
        let micros = i64::try_from((setting.booted_at + since_boot).as_micros()).unwrap_or(i64::MAX);
        (setting, Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX))
    }
}

/// The first time after `now` that is a whole number of beats after `beat`.
pub(crate) fn next_beat(beat: Instant, now: Instant) -> Instant {
    let since = now.saturating_duration_since(beat);
    let past = since.as_nanos() / BEAT.as_nanos();
    beat + BEAT * u32::try_from(past + 1).unwrap_or(u32::MAX)
}

/// The wall-clock time at which the machine booted, and the time since the boot. The two system clocks cannot be read
/// at the same time. If this thread was interrupted between the reads, this function reads both again.
fn read(source: &dyn TimeSource) -> (SignedDuration, SignedDuration) {
    loop {
        let before = source.since_boot();
        let wall = source.wall().duration_since(Timestamp::UNIX_EPOCH);
        let since_boot = source.since_boot();
        if since_boot - before < MIN_STEP / 10 {
            // Whole microseconds, like all times that are stored.
            let micros = i64::try_from((wall - since_boot).as_micros()).unwrap_or(i64::MAX);
            return (SignedDuration::from_micros(micros), since_boot);
        }
    }
}

/// Notices that the daemon did not run for a while, because the machine slept or the daemon was stopped.
pub(crate) struct SleepDetector {
    clock: Clock,
    seen: SignedDuration,
}

impl SleepDetector {
    pub(crate) fn new(clock: Clock) -> Self {
        let seen = clock.total_sleep();
        Self { clock, seen }
    }

    /// How long the daemon did not run since the last call. `None` if it ran all the time.
    pub(crate) fn slept(&mut self) -> Option<SignedDuration> {
        let total = self.clock.total_sleep();
        let slept = total - std::mem::replace(&mut self.seen, total);
        Some(slept).filter(|slept| !slept.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn is_about(one: Timestamp, other: Timestamp) -> bool {
        one.duration_since(other).abs() < SignedDuration::from_mins(1)
    }

    #[test]
    fn the_clock_follows_the_wall_clock_and_reports_the_step_once() {
        let time = TestTime::default();
        let clock = time.clock();
        let start = clock.now();
        assert!(is_about(start, Timestamp::now()));
        time.set_wall_clock(-DAY);
        assert!(is_about(clock.now(), start - DAY));
        let (_, step) = clock.now_and_step();
        assert!(step.is_some_and(|step| (step + DAY).abs() < MIN_STEP), "{step:?}");
        assert_eq!(clock.now_and_step().1, None);
        time.set_wall_clock(SignedDuration::ZERO);
        assert!(is_about(clock.now(), start));
        assert!(clock.total_step().abs() < MIN_STEP);
    }

    #[test]
    fn a_small_correction_is_no_step() {
        let time = TestTime::default();
        let clock = time.clock();
        time.set_wall_clock(SignedDuration::from_millis(900));
        assert_eq!(clock.now_and_step().1, None);
        time.set_wall_clock(SignedDuration::from_millis(-900));
        assert_eq!(clock.now_and_step().1, None);
    }

    #[test]
    fn a_sleep_is_no_step_of_the_clock() {
        let time = TestTime::default();
        let (clock, before) = (time.clock(), Timestamp::now());
        let mut detector = SleepDetector::new(clock.clone());
        clock.plan_beat(None);
        time.sleep(DAY);
        assert_eq!(detector.slept(), None, "without a plan, a pause is no sleep");
        clock.plan_beat(Some(BEAT));
        time.sleep(DAY);
        assert!(is_about(clock.now(), before + DAY + DAY));
        assert_eq!(clock.now_and_step().1, None);
        assert!(detector.slept().is_some_and(|slept| (slept - DAY).abs() < SignedDuration::from_mins(1)));
        assert_eq!(detector.slept(), None);
    }

    #[test]
    fn a_step_between_two_daemons_is_known_exactly_during_one_boot() {
        let time = TestTime::default();
        let stored = time.clock().anchor();
        // The daemon was down for an hour, and the clock was set meanwhile.
        for step in [-DAY, DAY, SignedDuration::from_mins(-2), SignedDuration::from_mins(2)] {
            time.set_wall_clock(step);
            time.sleep(SignedDuration::from_hours(1));
            let found = time.clock().take_step_since(Some(&stored), None);
            assert!((found - step).abs() < MIN_STEP, "{found:?} instead of {step:?}");
        }
        time.set_wall_clock(SignedDuration::ZERO);
        assert_eq!(time.clock().take_step_since(Some(&stored), None), SignedDuration::ZERO);
    }

    #[test]
    fn a_step_while_the_daemon_starts_counts_once() {
        let time = TestTime::default();
        let stored = time.clock().anchor();
        let clock = time.clock();
        time.set_wall_clock(DAY);
        assert!((clock.take_step_since(Some(&stored), None) - DAY).abs() < MIN_STEP);
        assert_eq!(clock.now_and_step().1, None);
    }

    #[test]
    fn a_slow_step_of_the_engine_is_no_sleep() {
        let time = TestTime::default();
        let clock = time.clock();
        let mut detector = SleepDetector::new(clock.clone());
        clock.plan_beat(Some(LONGEST_STEP));
        time.sleep(SignedDuration::from_secs(20));
        assert_eq!(detector.slept(), None);
    }

    #[test]
    fn after_a_reboot_future_times_are_moved_back_to_now() {
        let time = TestTime::default();
        let stored = ClockAnchor { boot: Some("an earlier boot".into()), ..time.clock().anchor() };
        let clock = time.clock();
        for stored in [None, Some(&stored)] {
            let step = clock.take_step_since(stored, Some(Timestamp::now() + DAY));
            assert!((step + DAY).abs() < SignedDuration::from_mins(1), "{step:?}");
            assert_eq!(clock.take_step_since(stored, Some(Timestamp::now() - DAY)), SignedDuration::ZERO);
        }
    }
}
