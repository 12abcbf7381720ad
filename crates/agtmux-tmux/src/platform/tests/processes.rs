use std::process::{Child, Command};

use super::{Bench, on_each_platform};
use crate::platform::PlatformSignal::Exited;
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);

on_each_platform![
    the_end_is_reported,
    an_unreaped_process_has_ended,
    a_dead_process_is_reported_at_once,
    another_start_time_is_another_process,
    a_forgotten_process_may_end_in_silence,
    two_tokens_may_watch_one_process,
    a_token_moves_to_another_process,
    a_dropped_watcher_closes_its_signals,
    those_that_live_are_told_in_their_order,
];

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().expect("sleep is everywhere")
}

fn end(child: &mut Child) {
    child.kill().expect("our own child");
    child.wait().expect("our own child");
}

impl Bench {
    fn watch_child(&self, token: WatchToken, child: &Child) {
        let start = self.processes.start_time(child.id());
        assert!(start.is_some(), "a child that was not waited for has a start time");
        self.watcher.watch_process(token, child.id(), start).expect("a child can be watched");
    }
}

async fn the_end_is_reported(mut bench: Bench) {
    let mut child = sleeper();
    bench.watch_child(A, &child);
    end(&mut child);
    assert_eq!(bench.next().await, Exited(A));
}

async fn an_unreaped_process_has_ended(mut bench: Bench) {
    let mut child = sleeper();
    bench.watch_child(A, &child);
    child.kill().expect("our own child");
    assert_eq!(bench.next().await, Exited(A));
    child.wait().expect("our own child");
}

async fn a_dead_process_is_reported_at_once(mut bench: Bench) {
    let mut child = sleeper();
    let pid = child.id();
    end(&mut child);
    bench.watcher.watch_process(A, pid, None).expect("to be gone is no error");
    assert_eq!(bench.signals.try_recv(), Some(Exited(A)));
    bench.watcher.watch_process(B, u32::MAX, None).expect("to be no pid at all is no error");
    assert_eq!(bench.next().await, Exited(B));
}

async fn another_start_time_is_another_process(mut bench: Bench) {
    let own = std::process::id();
    let start = bench.processes.start_time(own).expect("this process lives");
    bench.watcher.watch_process(A, own, Some(start)).expect("this process lives");
    assert_eq!(bench.signals.try_recv(), None);
    bench.watcher.watch_process(A, own, Some(start - 1000)).expect("a stranger is no error");
    assert_eq!(bench.next().await, Exited(A));
}

async fn a_forgotten_process_may_end_in_silence(mut bench: Bench) {
    let (mut first, mut second) = (sleeper(), sleeper());
    bench.watch_child(A, &first);
    bench.watch_child(B, &second);
    end(&mut first);
    bench.watcher.unwatch(A);
    end(&mut second);
    assert_eq!(bench.next().await, Exited(B));
}

async fn two_tokens_may_watch_one_process(mut bench: Bench) {
    let mut child = sleeper();
    bench.watch_child(A, &child);
    bench.watch_child(B, &child);
    end(&mut child);
    let mut seen = [bench.next().await, bench.next().await];
    seen.sort_by_key(|signal| signal.token());
    assert_eq!(seen, [Exited(A), Exited(B)]);
}

async fn a_token_moves_to_another_process(mut bench: Bench) {
    let (mut first, mut second, mut third) = (sleeper(), sleeper(), sleeper());
    bench.watch_child(A, &first);
    bench.watch_child(A, &second);
    bench.watch_child(B, &third);
    end(&mut first);
    end(&mut third);
    assert_eq!(bench.next().await, Exited(B));
    end(&mut second);
    assert_eq!(bench.next().await, Exited(A));
}

async fn a_dropped_watcher_closes_its_signals(mut bench: Bench) {
    bench.watcher.watch_process(A, std::process::id(), None).expect("this process lives");
    drop(bench.watcher);
    assert_eq!(bench.signals.recv().await, None);
}

async fn those_that_live_are_told_in_their_order(bench: Bench) {
    let (mut first, mut second, mut gone) = (sleeper(), sleeper(), sleeper());
    end(&mut gone);
    let asked = [second.id(), gone.id(), first.id()];
    let living: Vec<u32> = bench.processes.living(&asked).iter().map(|process| process.pid).collect();
    assert_eq!(living, [second.id(), first.id()]);
    // Where the system tells: a child reads from where its parent does.
    assert_eq!(bench.processes.stdin_path(first.id()), bench.processes.stdin_path(std::process::id()));
    end(&mut first);
    end(&mut second);
}
