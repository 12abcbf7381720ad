//! The table alone, with a clock of our own: what happens exactly while a watch is disarmed.

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

struct Bench {
    inotify: Inotify,
    terminals: TerminalWatches,
    sender: SignalSender,
    signals: PlatformSignals,
    now: Instant,
}

impl Bench {
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

    /// Events of a write are queued before the write returns, so there is nothing to wait for.
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

    /// After a long burst: a few silent rounds, and one last signal.
    fn comes_to_rest(&mut self, token: WatchToken) {
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
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    assert_eq!(bench.terminals.next_due(), None);
    pty.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(A)]);
    assert_eq!(bench.terminals.next_due(), Some(bench.now + REARM_INTERVAL));
    assert_eq!(bench.after(REARM_INTERVAL - MS), []);
    assert_eq!(bench.after(MS), [PlatformSignal::Wrote(A)]);
    assert_eq!(bench.handle_events(), []);
    assert_eq!(bench.terminals.next_due(), None);
}

#[test]
fn a_steady_writer_gives_one_signal_per_gap() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    let mut signals = 0;
    for _ in 0..1000 {
        pty.write();
        signals += bench.handle_events().len();
        signals += bench.after(MS).len();
    }
    assert_eq!(signals, 1 + 3 + 3, "one at once, three after 100 ms each, then one each 200 ms");
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)], "what was written since");
    bench.comes_to_rest(A);
    pty.write();
    assert_eq!(bench.handle_events(), []);
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    assert_eq!(bench.terminals.next_due(), None);
}

/// How long this round of a steady writer lasts.
fn length(round: usize) -> Duration {
    if round < usize::from(MAX_BUSY_SCORE) { REARM_INTERVAL } else { BUSY_REARM_INTERVAL }
}

#[test]
fn a_busy_terminal_wakes_nobody_up_between_rounds() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    pty.write();
    bench.handle_events();
    for round in 0..10 {
        pty.write();
        assert!(bench.inotify.read().is_err(), "nothing to read on the queue that is waited for");
        assert_eq!(bench.after(length(round)), [PlatformSignal::Wrote(A)]);
    }
    bench.comes_to_rest(A);
}

#[test]
fn a_round_missed_now_and_then_wakes_nobody_up_either() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    pty.write();
    bench.handle_events();
    for round in 0..20 {
        let misses = round % 5 == 4;
        if !misses {
            pty.write();
        }
        assert!(bench.inotify.read().is_err(), "nothing to read on the queue that is waited for");
        // After a miss it has to prove its habit again.
        let length = if round > 4 && round % 5 == 0 { REARM_INTERVAL } else { length(round) };
        assert_eq!(bench.after(length), if misses { vec![] } else { vec![PlatformSignal::Wrote(A)] }, "round {round}");
    }
}

#[test]
fn a_number_that_passed_on_while_disarmed_is_not_watched() {
    let (mut bench, old) = (Bench::new(), Pty::open());
    bench.watch(A, &old);
    old.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(A)]);
    let new = old.replace();
    bench.watch(B, &new);
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::TerminalGone(A)]);
    new.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(B)]);
}

#[test]
fn a_terminal_that_went_while_disarmed_is_gone() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    pty.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(A)]);
    let path = pty.path.clone();
    drop(pty);
    let told = bench.after(REARM_INTERVAL);
    // Somebody else on this machine may get its number at once, and is heard under it then.
    let is_taken = path.exists();
    assert_eq!(told.first(), Some(&PlatformSignal::TerminalGone(A)), "{told:?}");
    assert!(is_taken || (told.len() == 1 && bench.terminals.next_due().is_none()), "{told:?}");
}

#[test]
fn changed_permissions_do_not_make_another_terminal() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    pty.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(A)]);
    std::fs::set_permissions(&pty.path, Permissions::from_mode(0o600)).expect("our own terminal");
    pty.write();
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
}

#[test]
fn somebody_else_closing_it_is_a_hint_only() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    drop(std::fs::OpenOptions::new().write(true).open(&pty.path).expect("our own terminal"));
    assert_eq!(bench.handle_events(), [PlatformSignal::TerminalGone(A)]);
    assert_eq!(bench.after(REARM_INTERVAL), [PlatformSignal::Wrote(A)]);
    bench.after(REARM_INTERVAL);
    pty.write();
    assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(A)]);
}

#[test]
fn lost_events_leave_no_watch_disarmed() {
    let (mut bench, pty, quiet) = (Bench::new(), Pty::open(), Pty::open());
    bench.watch(A, &pty);
    bench.watch(B, &quiet);
    pty.write();
    bench.inotify.read().expect("the events that are lost");
    bench.terminals.rearm_all(&bench.inotify, bench.now, &bench.sender);
    assert_eq!(bench.received().len(), 2);
    assert_eq!(bench.after(REARM_INTERVAL), []);
    for (token, pty) in [(A, &pty), (B, &quiet)] {
        pty.write();
        assert_eq!(bench.handle_events(), [PlatformSignal::Wrote(token)]);
    }
}

#[test]
fn a_forgotten_terminal_is_neither_due_nor_watched() {
    let (mut bench, pty) = (Bench::new(), Pty::open());
    bench.watch(A, &pty);
    pty.write();
    bench.handle_events();
    bench.terminals.unwatch(&bench.inotify, A);
    assert_eq!(bench.terminals.next_due(), None);
    bench.watch(A, &pty);
    pty.write();
    bench.terminals.unwatch(&bench.inotify, A);
    assert_eq!(bench.handle_events(), []);
}
