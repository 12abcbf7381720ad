//! Runs the same tests on all backends, with real terminals, processes and files.

#[cfg(target_os = "linux")]
mod cost;
mod paths;
mod processes;
#[cfg(target_os = "linux")]
pub(super) mod pty;
#[cfg(target_os = "linux")]
mod terminals;
mod trees;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::portable::{PollingWatcher, PsTable};
use super::{Platform, PlatformOptions, PlatformSignal, PlatformSignals, PlatformWatcher, ProcessTable, open, signals};

/// How long a test waits for an expected result. This is long enough for a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

struct PlatformFixture {
    watcher: Arc<dyn PlatformWatcher>,
    signals: PlatformSignals,
    processes: Arc<dyn ProcessTable>,
}

impl PlatformFixture {
    fn native() -> Self {
        Self::open(PlatformOptions::default())
    }

    fn open(options: PlatformOptions) -> Self {
        let Platform { watcher, signals, processes } = open(options).expect("the platform opens");
        Self { watcher, signals, processes }
    }

    fn portable() -> Self {
        let (sender, signals) = signals::channel();
        let runtime = tokio::runtime::Handle::current();
        let watcher = Arc::new(PollingWatcher::start(&runtime, sender, Duration::from_millis(20)));
        Self { watcher, signals, processes: Arc::new(PsTable::default()) }
    }

    async fn next(&mut self) -> PlatformSignal {
        let next = tokio::time::timeout(DEADLINE, self.signals.recv()).await;
        next.expect("a signal before the deadline").expect("the watcher is open")
    }

    /// Reads signals until `wanted` arrives. Returns all of them, including `wanted`.
    async fn until(&mut self, wanted: PlatformSignal) -> Vec<PlatformSignal> {
        let mut seen = Vec::new();
        while seen.last() != Some(&wanted) {
            seen.push(self.next().await);
        }
        seen
    }
}

/// Calls `look` until it returns a value. Fails the test after `DEADLINE`.
async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not before the deadline: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

macro_rules! on_each_platform {
    ($($test:ident),* $(,)?) => {
        #[cfg(target_os = "linux")]
        mod native {
            use crate::platform::tests::PlatformFixture;
            $(#[tokio::test] async fn $test() { super::$test(PlatformFixture::native()).await })*
        }
        mod portable {
            use crate::platform::tests::PlatformFixture;
            $(#[tokio::test] async fn $test() { super::$test(PlatformFixture::portable()).await })*
        }
    };
}
use on_each_platform;
