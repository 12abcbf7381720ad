//! Waits until a condition holds. If it does not hold in time, the error message names the condition.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(25);

/// The result of one poll: the value that the caller waits for, or a description of the current state.
pub trait WaitResult<T> {
    fn into_result(self) -> Result<T, String>;
}

impl<T> WaitResult<T> for Option<T> {
    fn into_result(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".into())
    }
}

impl<T, S: Debug> WaitResult<T> for Result<T, S> {
    fn into_result(self) -> Result<T, String> {
        self.map_err(|seen| format!("{seen:?}"))
    }
}

/// Calls `look` until it returns a value. After the deadline, fails the test with `what` and the last state. `look`
/// returns an `Option`, or a `Result` whose error describes the current state.
#[track_caller]
pub fn wait_for<T, O: WaitResult<T>>(what: &str, deadline: Duration, mut look: impl FnMut() -> O) -> T {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        // Read the clock before the poll, so that the last poll begins after the deadline. Otherwise a slow machine may
        // poll only once.
        let late = start.elapsed() >= deadline;
        let seen = match look().into_result() {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        assert!(!late, "waited {deadline:?} for {what}; last seen: {seen}");
        thread::sleep(pause);
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Polls until the condition holds.
#[track_caller]
pub fn wait_until(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, deadline, || holds().then_some(()));
}

/// Waits until the next second of the clock begins. tmux records the time of a key press only in whole seconds.
pub fn wait_for_next_second() {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let now = seconds();
    wait_until("the next second", Duration::from_secs(10), || seconds() > now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn wait_for_returns_the_value() {
        let mut looks = 0;
        let found = wait_for("the third poll", Duration::from_secs(5), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    fn wait_for_reports_the_last_state() {
        let error = catch_unwind(|| wait_for::<(), _>("the message", Duration::from_millis(5), || Err("nothing yet")))
            .expect_err("the wait fails");
        let message = error.downcast_ref::<String>().expect("a message");
        assert_eq!(message, "waited 5ms for the message; last seen: \"nothing yet\"");
    }

    #[test]
    fn the_last_poll_begins_after_the_deadline() {
        let start = Instant::now();
        wait_until("a slow poll", Duration::from_millis(1), || {
            let late_enough = start.elapsed() > Duration::from_millis(5);
            thread::sleep(Duration::from_millis(10));
            late_enough
        });
    }
}
