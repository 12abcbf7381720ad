use std::thread;
use std::time::{Duration, Instant};

/// Looks until there is something, or the time is up. Unlike the testkit's waits it does not fail: what does not come is a
/// result here.
pub(crate) fn poll_until<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    const PAUSE: Duration = Duration::from_millis(25);
    let start = Instant::now();
    loop {
        // Read before the look: the last one must begin after the deadline.
        let late = start.elapsed() >= deadline;
        if let Some(found) = look() {
            return Some(found);
        }
        if late {
            return None;
        }
        thread::sleep(PAUSE);
    }
}
