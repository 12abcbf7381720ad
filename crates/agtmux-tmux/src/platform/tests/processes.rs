use std::process::{Child, Command};

use super::{PlatformFixture, on_each_platform};
use crate::platform::PlatformSignal::Exited;
use crate::platform::WatchToken;

const A: WatchToken = WatchToken(1);
const B: WatchToken = WatchToken(2);

on_each_platform![
    a_process_exit_is_reported,
    a_zombie_counts_as_exited,
    a_dead_process_is_reported_at_once,
    a_different_start_time_counts_as_exited,
    an_unwatched_process_causes_no_signal,
    two_tokens_may_watch_one_process,
    a_token_moves_to_another_process,
    a_dropped_watcher_closes_its_signals,
    living_processes_are_returned_in_order,
];

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().expect("sleep starts")
}

fn end(child: &mut Child) {
    child.kill().expect("our own child");
    child.wait().expect("our own child");
}

impl PlatformFixture {
    fn watch_child(&self, token: WatchToken, child: &Child) {
        let start = self.processes.start_time(child.id());
        assert!(start.is_some(), "a child that was not waited for has a start time");
        self.watcher.watch_process(token, child.id(), start).expect("a child can be watched");
    }
}

async fn a_process_exit_is_reported(mut fixture: PlatformFixture) {
    let mut child = sleeper();
    fixture.watch_child(A, &child);
    end(&mut child);
    assert_eq!(fixture.next().await, Exited(A));
}

async fn a_zombie_counts_as_exited(mut fixture: PlatformFixture) {
    let mut child = sleeper();
    fixture.watch_child(A, &child);
    child.kill().expect("our own child");
    assert_eq!(fixture.next().await, Exited(A));
    child.wait().expect("our own child");
}

async fn a_dead_process_is_reported_at_once(mut fixture: PlatformFixture) {
    let mut child = sleeper();
    let pid = child.id();
    end(&mut child);
    fixture.watcher.watch_process(A, pid, None).expect("a dead process is accepted");
    assert_eq!(fixture.signals.try_recv(), Some(Exited(A)));
    fixture.watcher.watch_process(B, u32::MAX, None).expect("an invalid pid is accepted");
    assert_eq!(fixture.next().await, Exited(B));
}

async fn a_different_start_time_counts_as_exited(mut fixture: PlatformFixture) {
    let own = std::process::id();
    let start = fixture.processes.start_time(own).expect("this process runs");
    fixture.watcher.watch_process(A, own, Some(start)).expect("this process runs");
    assert_eq!(fixture.signals.try_recv(), None);
    fixture.watcher.watch_process(A, own, Some(start - 1000)).expect("another process is accepted");
    assert_eq!(fixture.next().await, Exited(A));
}

async fn an_unwatched_process_causes_no_signal(mut fixture: PlatformFixture) {
    let (mut first, mut second) = (sleeper(), sleeper());
    fixture.watch_child(A, &first);
    fixture.watch_child(B, &second);
    end(&mut first);
    fixture.watcher.unwatch(A);
    end(&mut second);
    assert_eq!(fixture.next().await, Exited(B));
}

async fn two_tokens_may_watch_one_process(mut fixture: PlatformFixture) {
    let mut child = sleeper();
    fixture.watch_child(A, &child);
    fixture.watch_child(B, &child);
    end(&mut child);
    let mut seen = [fixture.next().await, fixture.next().await];
    seen.sort_by_key(|signal| signal.token());
    assert_eq!(seen, [Exited(A), Exited(B)]);
}

async fn a_token_moves_to_another_process(mut fixture: PlatformFixture) {
    let (mut first, mut second, mut third) = (sleeper(), sleeper(), sleeper());
    fixture.watch_child(A, &first);
    fixture.watch_child(A, &second);
    fixture.watch_child(B, &third);
    end(&mut first);
    end(&mut third);
    assert_eq!(fixture.next().await, Exited(B));
    end(&mut second);
    assert_eq!(fixture.next().await, Exited(A));
}

async fn a_dropped_watcher_closes_its_signals(mut fixture: PlatformFixture) {
    fixture.watcher.watch_process(A, std::process::id(), None).expect("this process runs");
    drop(fixture.watcher);
    assert_eq!(fixture.signals.recv().await, None);
}

async fn living_processes_are_returned_in_order(fixture: PlatformFixture) {
    let (mut first, mut second, mut gone) = (sleeper(), sleeper(), sleeper());
    end(&mut gone);
    let pids = [second.id(), gone.id(), first.id()];
    let living: Vec<u32> = fixture.processes.living(&pids).iter().map(|process| process.pid).collect();
    assert_eq!(living, [second.id(), first.id()]);
    // A child inherits the stdin of its parent. Both values are `None` if the system does not report stdin.
    assert_eq!(fixture.processes.stdin_path(first.id()), fixture.processes.stdin_path(std::process::id()));
    end(&mut first);
    end(&mut second);
}
