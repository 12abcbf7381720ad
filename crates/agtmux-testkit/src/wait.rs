//! Waiting for something by its name.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(25);

/// What a look at the world can say: done, or not yet and what was seen instead.
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

/// Looks again and again until there is something, and fails the test with the name of what it waited for and what
/// it saw last. A look returns an `Option`, or a `Result` whose error is what was seen instead.
#[track_caller]
pub fn wait_for<T, O: WaitResult<T>>(what: &str, deadline: Duration, mut look: impl FnMut() -> O) -> T {
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        // Read before the look: the last look must begin after the deadline, or a slow machine gets only one.
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

/// The same for a plain condition.
#[track_caller]
pub fn wait_until(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, deadline, || holds().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn it_returns_what_it_waited_for() {
        let mut looks = 0;
        let found = wait_for("the third look", Duration::from_secs(5), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    fn it_says_what_it_missed() {
        let error = catch_unwind(|| wait_for::<(), _>("godot", Duration::from_millis(5), || Err("only vladimir")))
            .expect_err("he does not come");
        let message = error.downcast_ref::<String>().expect("a message");
        assert_eq!(message, "waited 5ms for godot; last seen: \"only vladimir\"");
    }

    #[test]
    fn the_last_look_is_after_the_deadline() {
        let start = Instant::now();
        wait_until("a slow look", Duration::from_millis(1), || {
            let late_enough = start.elapsed() > Duration::from_millis(5);
            thread::sleep(Duration::from_millis(10));
            late_enough
        });
    }
}
