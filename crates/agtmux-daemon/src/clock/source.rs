//! The system clocks from which the daemon's clock takes its time.

use std::fs;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// Only for tests: names a file that contains a number of seconds. The daemon's wall clock is ahead of the real one by
/// this number. The daemon reads the file again and again, so a test can set the clock while the daemon runs.
const TEST_CLOCK_VARIABLE: &str = "AGTMUX_TEST_CLOCK_FILE";

/// The system clock that counts the time since the boot. On Linux, `Boottime` includes the time during which the
/// machine sleeps, and `Monotonic` does not.
#[cfg(target_os = "linux")]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;

pub(super) trait TimeSource: Send + Sync {
    /// The wall clock. It may be set at any time.
    fn wall(&self) -> Timestamp;

    /// The time since the machine booted. It cannot be set.
    fn since_boot(&self) -> SignedDuration;

    /// Identifies this boot of the machine.
    fn boot_id(&self) -> Option<String>;
}

/// The clocks of the operating system.
pub(super) struct SystemTime {
    test_clock: Option<PathBuf>,
}

impl SystemTime {
    pub(super) fn from_env() -> Self {
        Self { test_clock: std::env::var_os(TEST_CLOCK_VARIABLE).map(PathBuf::from) }
    }
}

impl TimeSource for SystemTime {
    fn wall(&self) -> Timestamp {
        let read = |path: &PathBuf| fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
        let ahead = self.test_clock.as_ref().and_then(read).unwrap_or(0);
        Timestamp::now().checked_add(SignedDuration::from_secs(ahead)).unwrap_or(Timestamp::MAX)
    }

    fn since_boot(&self) -> SignedDuration {
        let time = clock_gettime(BOOT_CLOCK);
        SignedDuration::new(time.tv_sec, i32::try_from(time.tv_nsec).unwrap_or_default())
    }

    fn boot_id(&self) -> Option<String> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    }
}

/// The time of the operating system plus offsets that a test sets.
#[cfg(test)]
#[derive(Debug, Default, Clone)]
pub(crate) struct TestTime(std::sync::Arc<TestOffsets>);

#[cfg(test)]
#[derive(Debug, Default)]
struct TestOffsets {
    ahead_micros: std::sync::atomic::AtomicI64,
    slept_micros: std::sync::atomic::AtomicI64,
}

#[cfg(test)]
impl TestTime {
    pub(crate) fn clock(&self) -> super::Clock {
        super::Clock::with_source(Box::new(self.clone()))
    }

    /// Sets the wall clock, so that it is ahead of the real one by this much.
    pub(crate) fn set_wall_clock(&self, ahead: SignedDuration) {
        let micros = i64::try_from(ahead.as_micros()).expect("a short time");
        self.0.ahead_micros.store(micros, std::sync::atomic::Ordering::SeqCst);
    }

    /// Simulates a sleep of the machine: moves the clock forward without waking the daemon.
    pub(crate) fn sleep(&self, time: SignedDuration) {
        let micros = i64::try_from(time.as_micros()).expect("a short time");
        self.0.slept_micros.fetch_add(micros, std::sync::atomic::Ordering::SeqCst);
    }

    fn slept(&self) -> SignedDuration {
        SignedDuration::from_micros(self.0.slept_micros.load(std::sync::atomic::Ordering::SeqCst))
    }
}

#[cfg(test)]
impl TimeSource for TestTime {
    fn wall(&self) -> Timestamp {
        let ahead = SignedDuration::from_micros(self.0.ahead_micros.load(std::sync::atomic::Ordering::SeqCst));
        Timestamp::now() + ahead + self.slept()
    }

    fn since_boot(&self) -> SignedDuration {
        SystemTime { test_clock: None }.since_boot() + self.slept()
    }

    fn boot_id(&self) -> Option<String> {
        Some("a boot in a test".into())
    }
}
