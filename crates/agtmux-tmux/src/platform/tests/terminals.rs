use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::PlatformFixture;
use super::pty::Pty;
use crate::platform::PlatformOptions;
use crate::platform::PlatformSignal::{TerminalGone, Wrote};
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);
const GAP: Duration = Duration::from_millis(100);

impl PlatformFixture {
    fn watch(&self, token: WatchToken, pty: &Pty) {
        self.watcher.watch_terminal(token, &pty.path).expect("a pty can be watched");
    }

    /// Writes to the terminal once. Returns all signals up to the one that reports this write.
    async fn written(&mut self, token: WatchToken, pty: &Pty) -> Vec<crate::platform::PlatformSignal> {
        pty.write();
        self.until(Wrote(token)).await
    }

    async fn burst(&mut self, token: WatchToken, pty: &Pty) -> Vec<crate::platform::PlatformSignal> {
        pty.write();
        let mut seen = self.until(Wrote(token)).await;
        seen.extend(self.until(Wrote(token)).await);
        seen
    }
}

#[tokio::test]
async fn output_and_input_are_reported() {
    let (mut fixture, pty) = (PlatformFixture::native(), Pty::open());
    assert!(fixture.watcher.reports_output());
    fixture.watch(A, &pty);
    assert_eq!(fixture.burst(A, &pty).await, [Wrote(A), Wrote(A)]);
    pty.type_and_read_line();
    assert_eq!(fixture.next().await, Wrote(A));
}

#[tokio::test]
async fn a_burst_begins_at_once_and_ends_with_a_signal_after_the_last_write() {
    let (mut fixture, pty) = (PlatformFixture::native(), Pty::open());
    fixture.watch(A, &pty);
    let begun = Instant::now();
    for count in 0..6 {
        pty.write();
        assert_eq!(fixture.next().await, Wrote(A));
        assert!(begun.elapsed() >= GAP * count, "signal {count} came after {:?}", begun.elapsed());
        pty.write();
    }
    assert_eq!(fixture.next().await, Wrote(A));
}

#[tokio::test]
async fn an_idle_terminal_stops_signalling() {
    let (mut fixture, first, second) = (PlatformFixture::native(), Pty::open(), Pty::open());
    fixture.watch(A, &first);
    fixture.watch(B, &second);
    assert_eq!(fixture.burst(A, &first).await, [Wrote(A), Wrote(A)]);
    assert_eq!(fixture.burst(B, &second).await, [Wrote(B), Wrote(B)]);
    assert_eq!(fixture.written(B, &second).await, [Wrote(B)]);
}

#[tokio::test]
async fn an_unwatched_token_causes_no_signals() {
    let (mut fixture, first, second) = (PlatformFixture::native(), Pty::open(), Pty::open());
    fixture.watch(A, &first);
    fixture.watch(B, &second);
    first.write();
    assert_eq!(fixture.next().await, Wrote(A));
    first.write();
    fixture.watcher.unwatch(A);
    first.write();
    assert_eq!(fixture.burst(B, &second).await, [Wrote(B), Wrote(B)]);
    drop(first);
    assert_eq!(fixture.written(B, &second).await, [Wrote(B)]);
}

#[tokio::test]
async fn two_tokens_may_watch_one_terminal() {
    let (mut fixture, pty) = (PlatformFixture::native(), Pty::open());
    fixture.watch(A, &pty);
    fixture.watch(B, &pty);
    fixture.watch(B, &pty);
    assert_eq!(fixture.burst(B, &pty).await, [Wrote(A), Wrote(B), Wrote(A), Wrote(B)]);
    fixture.watcher.unwatch(A);
    assert_eq!(fixture.written(B, &pty).await, [Wrote(B)]);
}

#[tokio::test]
async fn a_token_moves_to_another_terminal() {
    let (mut fixture, first, second) = (PlatformFixture::native(), Pty::open(), Pty::open());
    fixture.watch(A, &first);
    fixture.watch(A, &second);
    first.write();
    assert_eq!(fixture.burst(A, &second).await, [Wrote(A), Wrote(A)]);
    fixture.watch(B, &first);
    assert_eq!(fixture.burst(B, &first).await, [Wrote(B), Wrote(B)]);
}

#[tokio::test]
async fn a_reused_terminal_number_is_a_new_terminal() {
    let (mut fixture, old, other) = (PlatformFixture::native(), Pty::open(), Pty::open());
    fixture.watch(A, &old);
    old.write();
    assert_eq!(fixture.next().await, Wrote(A));
    let new = old.replace();
    new.write();
    fixture.until(TerminalGone(A)).await;
    fixture.watch(B, &new);
    let mut seen = fixture.burst(B, &new).await;
    fixture.watch(WatchToken(3), &other);
    seen.extend(fixture.burst(WatchToken(3), &other).await);
    assert!(!seen.contains(&Wrote(A)), "{seen:?}");
}

#[tokio::test]
async fn watching_a_reused_number_watches_the_new_terminal() {
    let (mut fixture, old) = (PlatformFixture::native(), Pty::open());
    fixture.watch(A, &old);
    let new = old.replace();
    fixture.watch(A, &new);
    new.write();
    fixture.until(Wrote(A)).await;
}

#[tokio::test]
async fn without_output_only_the_end_is_reported() {
    let mut fixture = PlatformFixture::open(PlatformOptions { pty_events: false, ..PlatformOptions::default() });
    assert!(!fixture.watcher.reports_output());
    let pty = Pty::open();
    fixture.watch(A, &pty);
    pty.write();
    drop(pty);
    assert_eq!(fixture.next().await, TerminalGone(A));
}

#[tokio::test]
async fn polling_notices_the_end_of_a_terminal() {
    let (mut fixture, pty) = (PlatformFixture::portable(), Pty::open());
    assert!(!fixture.watcher.reports_output());
    fixture.watch(A, &pty);
    let _new = pty.replace();
    assert_eq!(fixture.next().await, TerminalGone(A));
}

#[tokio::test]
async fn watch_terminal_rejects_other_files() {
    for fixture in [PlatformFixture::native(), PlatformFixture::portable()] {
        for path in ["/", "/etc/passwd"] {
            let error = fixture.watcher.watch_terminal(A, Path::new(path)).expect_err("not a terminal");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
        let error = fixture.watcher.watch_terminal(A, Path::new("/dev/pts/987654")).expect_err("missing");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn watches_can_be_added_outside_the_runtime() {
    let (mut fixture, pty) = (PlatformFixture::native(), Pty::open());
    let watcher = fixture.watcher.clone();
    let path = pty.path.clone();
    let thread = std::thread::spawn(move || {
        watcher.watch_terminal(A, &path).expect("a pty can be watched");
        watcher.watch_process(B, std::process::id(), None).expect("this process runs");
    });
    thread.join().expect("no panic outside the runtime");
    assert_eq!(fixture.burst(A, &pty).await, [Wrote(A), Wrote(A)]);
}
