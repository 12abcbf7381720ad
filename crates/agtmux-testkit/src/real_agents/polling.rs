use std::thread;
use std::time::{Duration, Instant};

/// Calls `attempt` until it returns a value. Returns None after the deadline, unlike `wait_for`, which fails the test.
pub fn poll_until<T>(deadline: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    const PAUSE: Duration = Duration::from_millis(25);
    let start = Instant::now();
    loop {
        // Read the clock before the attempt, so that the last attempt starts after the deadline.
        let late = start.elapsed() >= deadline;
        if let Some(value) = attempt() {
            return Some(value);
        }
        if late {
            return None;
        }
        thread::sleep(PAUSE);
    }
}
