//! Tests the watches of terminals with a controlled clock. Several tests change a terminal while its watch
//! is disarmed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use super::inotify::Inotify;
use super::terminals::{BUSY_REARM_INTERVAL, MAX_BUSY_SCORE, REARM_INTERVAL, TerminalWatches};
use crate::platform::signals::{self, PlatformSignal, PlatformSignals, SignalSender, WatchToken};
use crate::platform::tests::pty::Pty;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);
const MS: Duration = Duration::from_millis(1);

struct TerminalFixture {
    inotify: Inotify,
    terminals: TerminalWatches,
    sender: SignalSender,
    signals: PlatformSignals,
    now: Instant,
}

impl TerminalFixture {
    fn new() -> Self {
        let (sender, signals) = signals::channel();
        let inotify = Inotify::new().expect("a free inotify instance");
        let now = Instant::now();
        let terminals = TerminalWatches::new(true, now).expect("a free inotify instance");
        Self { inotify, terminals, sender, signals, now }
    }

    fn watch(&mut self, token: WatchToken, pty: &Pty) {
        self.terminals.watch(&self.inotify, token, &pty.path).expect("a pty can be watched");
    }

    /// Handles the queued events and returns the signals. The tests need not wait, because a write has queued its
    /// events when it returns.
    fn handle_events(&mut self) -> Vec<PlatformSignal> {
        for event in self.inotify.read().unwrap_or_default() {
            self.terminals.on_event(&self.inotify, event, self.now, &self.sender);
        }
        self.received()
    }

    fn after(&mut self, time: Duration) -> Vec<PlatformSignal> {
        self.now += time;
        self.terminals.rearm_due(&self.inotify, self.now, &self.sender);
        self.received()
    }

    /// Checks what follows after a long burst of output: a few rounds without a signal, and then one last signal.
    fn assert_becomes_idle(&mut self, token: WatchToken) {
        assert_eq!([self.after(BUSY_REARM_INTERVAL), self.after(REARM_INTERVAL)], [vec![], vec![]]);
        assert_eq!(self.after(REARM_INTERVAL), [PlatformSignal::Wrote(token)]);
        assert_eq!(self.terminals.next_due(), None);
    }

    fn received(&mut self) -> Vec<PlatformSignal> {
        std::iter::from_fn(|| self.signals.try_recv()).collect()
    }
}

#[test]
fn one_write_gives_a_first_and_a_last_signal() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    assert_eq!(fixture.terminals.next_due(), None);
    pty.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(A)]);
    assert_eq!(fixture.terminals.next_due(), Some(fixture.now + REARM_INTERVAL));
    assert_eq!(fixture.after(REARM_INTERVAL - MS), []);
    assert_eq!(fixture.after(MS), [PlatformSignal::Wrote(A)]);
    assert_eq!(fixture.handle_events(), []);
    assert_eq!(fixture.terminals.next_due(), None);
}

#[test]
fn a_steady_writer_gives_one_signal_per_interval() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    let mut signals = 0;
    for _ in 0..1000 {
        pty.write();
        signals += fixture.handle_events().len();
        signals += fixture.after(MS).len();
    }
    assert_eq!(signals, 1 + 3 + 3, "one at once, three at 100 ms intervals, then one every 200 ms");
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)], "output since the last signal");
    fixture.assert_becomes_idle(A);
    pty.write();
    assert_eq!(fixture.handle_events(), []);
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    assert_eq!(fixture.terminals.next_due(), None);
}

/// How long round number `round` lasts if the program writes all the time.
fn length(round: usize) -> Duration {
    if round < usize::from(MAX_BUSY_SCORE) { REARM_INTERVAL } else { BUSY_REARM_INTERVAL }
}

#[test]
fn a_busy_terminal_causes_no_wakeups_between_rounds() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    pty.write();
    fixture.handle_events();
    for round in 0..10 {
        pty.write();
        assert!(fixture.inotify.read().is_err(), "the immediate queue is empty");
        assert_eq!(fixture.after(length(round)), [PlatformSignal::Wrote(A)]);
    }
    fixture.assert_becomes_idle(A);
}

#[test]
fn an_occasional_silent_round_causes_no_wakeups() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    pty.write();
    fixture.handle_events();
    for round in 0..20 {
        let misses = round % 5 == 4;
        if !misses {
            pty.write();
        }
        assert!(fixture.inotify.read().is_err(), "the immediate queue is empty");
        // After a missed round the score has to grow again.
        let length = if round > 4 && round % 5 == 0 { REARM_INTERVAL } else { length(round) };
        assert_eq!(
            fixture.after(length),
            if misses { vec![] } else { vec![PlatformSignal::Wrote(A)] },
            "round {round}"
        );
    }
}

#[test]
fn a_terminal_number_reused_while_disarmed_is_not_watched() {
    let (mut fixture, old) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &old);
    old.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(A)]);
    let new = old.replace();
    fixture.watch(B, &new);
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::TerminalGone(A)]);
    new.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(B)]);
}

#[test]
fn a_terminal_closed_while_disarmed_is_reported() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    pty.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(A)]);
    let path = pty.path.clone();
    drop(pty);
    let received = fixture.after(REARM_INTERVAL);
    // Another process may get the same terminal number at once and write to it.
    let number_is_reused = path.exists();
    assert_eq!(received.first(), Some(&PlatformSignal::TerminalGone(A)), "{received:?}");
    assert!(number_is_reused || (received.len() == 1 && fixture.terminals.next_due().is_none()), "{received:?}");
}

#[test]
fn changed_permissions_keep_the_identity() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    pty.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(A)]);
    std::fs::set_permissions(&pty.path, Permissions::from_mode(0o600)).expect("our own terminal");
    pty.write();
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
}

#[test]
fn a_close_by_another_process_keeps_the_watch() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    drop(std::fs::OpenOptions::new().write(true).open(&pty.path).expect("our own terminal"));
    assert_eq!(fixture.handle_events(), [PlatformSignal::TerminalGone(A)]);
    assert_eq!(fixture.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    fixture.after(REARM_INTERVAL);
    pty.write();
    assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(A)]);
}

#[test]
fn lost_events_leave_no_watch_disarmed() {
    let (mut fixture, pty, quiet) = (TerminalFixture::new(), Pty::open(), Pty::open());
    fixture.watch(A, &pty);
    fixture.watch(B, &quiet);
    pty.write();
    fixture.inotify.read().expect("events to discard");
    fixture.terminals.rearm_all(&fixture.inotify, fixture.now, &fixture.sender);
    assert_eq!(fixture.received().len(), 2);
    assert_eq!(fixture.after(REARM_INTERVAL), []);
    for (token, pty) in [(A, &pty), (B, &quiet)] {
        pty.write();
        assert_eq!(fixture.handle_events(), [PlatformSignal::Wrote(token)]);
    }
}

#[test]
fn an_unwatched_terminal_is_neither_due_nor_reported() {
    let (mut fixture, pty) = (TerminalFixture::new(), Pty::open());
    fixture.watch(A, &pty);
    pty.write();
    fixture.handle_events();
    fixture.terminals.unwatch(&fixture.inotify, A);
    assert_eq!(fixture.terminals.next_due(), None);
    fixture.watch(A, &pty);
    pty.write();
    fixture.terminals.unwatch(&fixture.inotify, A);
    assert_eq!(fixture.handle_events(), []);
}
