use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Bench;
use super::pty::Pty;
use crate::platform::PlatformOptions;
use crate::platform::PlatformSignal::{TerminalGone, Wrote};
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);
const GAP: Duration = Duration::from_millis(100);

impl Bench {
    fn watch(&self, token: WatchToken, pty: &Pty) {
        self.watcher.watch_terminal(token, &pty.path).expect("a pty can be watched");
    }

    /// Lets a burst on this terminal pass, with all that others say meanwhile. It must have been quiet before.
    /// What is heard until a further write is reported, which may have to wait for the gap to pass.
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
    let (mut bench, pty) = (Bench::native(), Pty::open());
    assert!(bench.watcher.reports_output());
    bench.watch(A, &pty);
    assert_eq!(bench.burst(A, &pty).await, [Wrote(A), Wrote(A)]);
    pty.type_and_read_line();
    assert_eq!(bench.next().await, Wrote(A));
}

#[tokio::test]
async fn a_burst_begins_at_once_and_ends_with_a_signal_after_the_last_write() {
    let (mut bench, pty) = (Bench::native(), Pty::open());
    bench.watch(A, &pty);
    let begun = Instant::now();
    for count in 0..6 {
        pty.write();
        assert_eq!(bench.next().await, Wrote(A));
        assert!(begun.elapsed() >= GAP * count, "signal {count} came after {:?}", begun.elapsed());
        pty.write();
    }
    assert_eq!(bench.next().await, Wrote(A));
}

#[tokio::test]
async fn an_idle_terminal_comes_to_rest() {
    let (mut bench, first, second) = (Bench::native(), Pty::open(), Pty::open());
    bench.watch(A, &first);
    bench.watch(B, &second);
    assert_eq!(bench.burst(A, &first).await, [Wrote(A), Wrote(A)]);
    assert_eq!(bench.burst(B, &second).await, [Wrote(B), Wrote(B)]);
    assert_eq!(bench.written(B, &second).await, [Wrote(B)]);
}

#[tokio::test]
async fn a_forgotten_token_stays_silent() {
    let (mut bench, first, second) = (Bench::native(), Pty::open(), Pty::open());
    bench.watch(A, &first);
    bench.watch(B, &second);
    first.write();
    assert_eq!(bench.next().await, Wrote(A));
    first.write();
    bench.watcher.unwatch(A);
    first.write();
    assert_eq!(bench.burst(B, &second).await, [Wrote(B), Wrote(B)]);
    drop(first);
    assert_eq!(bench.written(B, &second).await, [Wrote(B)]);
}

#[tokio::test]
async fn two_tokens_may_watch_one_terminal() {
    let (mut bench, pty) = (Bench::native(), Pty::open());
    bench.watch(A, &pty);
    bench.watch(B, &pty);
    bench.watch(B, &pty);
    assert_eq!(bench.burst(B, &pty).await, [Wrote(A), Wrote(B), Wrote(A), Wrote(B)]);
    bench.watcher.unwatch(A);
    assert_eq!(bench.written(B, &pty).await, [Wrote(B)]);
}

#[tokio::test]
async fn a_token_moves_to_another_terminal() {
    let (mut bench, first, second) = (Bench::native(), Pty::open(), Pty::open());
    bench.watch(A, &first);
    bench.watch(A, &second);
    first.write();
    assert_eq!(bench.burst(A, &second).await, [Wrote(A), Wrote(A)]);
    bench.watch(B, &first);
    assert_eq!(bench.burst(B, &first).await, [Wrote(B), Wrote(B)]);
}

#[tokio::test]
async fn a_number_may_pass_to_another_terminal() {
    let (mut bench, old, other) = (Bench::native(), Pty::open(), Pty::open());
    bench.watch(A, &old);
    old.write();
    assert_eq!(bench.next().await, Wrote(A));
    let new = old.replace();
    new.write();
    bench.until(TerminalGone(A)).await;
    bench.watch(B, &new);
    let mut seen = bench.burst(B, &new).await;
    bench.watch(WatchToken(3), &other);
    seen.extend(bench.burst(WatchToken(3), &other).await);
    assert!(!seen.contains(&Wrote(A)), "{seen:?}");
}

#[tokio::test]
async fn a_terminal_watched_again_after_it_came_back_is_the_new_one() {
    let (mut bench, old) = (Bench::native(), Pty::open());
    bench.watch(A, &old);
    let new = old.replace();
    bench.watch(A, &new);
    new.write();
    bench.until(Wrote(A)).await;
}

#[tokio::test]
async fn without_output_only_the_end_is_reported() {
    let mut bench = Bench::open(PlatformOptions { pty_events: false, ..PlatformOptions::default() });
    assert!(!bench.watcher.reports_output());
    let pty = Pty::open();
    bench.watch(A, &pty);
    pty.write();
    drop(pty);
    assert_eq!(bench.next().await, TerminalGone(A));
}

#[tokio::test]
async fn polling_notices_the_end_of_a_terminal() {
    let (mut bench, pty) = (Bench::portable(), Pty::open());
    assert!(!bench.watcher.reports_output());
    bench.watch(A, &pty);
    let _new = pty.replace();
    assert_eq!(bench.next().await, TerminalGone(A));
}

#[tokio::test]
async fn only_terminals_are_watched_as_terminals() {
    for bench in [Bench::native(), Bench::portable()] {
        for path in ["/", "/etc/passwd"] {
            let error = bench.watcher.watch_terminal(A, Path::new(path)).expect_err("not a terminal");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
        let error = bench.watcher.watch_terminal(A, Path::new("/dev/pts/987654")).expect_err("not there");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn watches_may_be_asked_for_outside_the_runtime() {
    let (mut bench, pty) = (Bench::native(), Pty::open());
    let watcher = bench.watcher.clone();
    let path = pty.path.clone();
    let asked = std::thread::spawn(move || {
        watcher.watch_terminal(A, &path).expect("a pty can be watched");
        watcher.watch_process(B, std::process::id(), None).expect("this process lives");
    });
    asked.join().expect("no panic outside the runtime");
    assert_eq!(bench.burst(A, &pty).await, [Wrote(A), Wrote(A)]);
}
