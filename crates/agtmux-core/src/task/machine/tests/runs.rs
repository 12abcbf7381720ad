//! Events caused by facts about single runs.

use super::fixture::{SessionFixture, run, window};
use crate::ids::{Generation, PaneId, WindowId};
use crate::task::{ExitSignal, PlannedRemoval, TaskExit, TaskInput, TaskSessionSnapshot, TaskSnapshot};

const NOTHING: [&str; 0] = [];

#[test]
fn a_launch_is_reported_once() {
    let mut session = SessionFixture::new();
    assert_eq!(session.launch(1, "t", "r1"), ["@1 (t) started"]);
    assert_eq!(session.started(1, "t", "r1"), NOTHING);
    assert_eq!(session.settle(), NOTHING);
    session.restart();
    assert_eq!(session.started(1, "t", "r1"), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_snapshot_from_before_the_launch_does_not_end_the_run() {
    let mut session = SessionFixture::new();
    let before = session.snapshot();
    session.wait(1);
    session.launch(1, "t", "r1");
    assert_eq!(session.apply(TaskInput::Snapshot(before.clone())), NOTHING);
    let older_server = TaskSessionSnapshot { server: Some(Generation { pid: 1, start_time: 1 }), ..before };
    assert_eq!(session.apply(TaskInput::Snapshot(older_server)), NOTHING);
    session.close(1);
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
}

#[test]
fn the_end_of_a_run_is_reported_after_the_clock_was_set_back() {
    for back in [120_000, 86_400_000] {
        let mut session = SessionFixture::new();
        session.launch(1, "t", "r1");
        session.wait(-back);
        session.close(1);
        assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
    }
}

#[test]
fn a_run_whose_launch_is_not_applied_yet_is_not_baseline() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![TaskSnapshot { run: Some(run("r1")), awaits_launch: true, ..window(1, "t") }];
    assert_eq!(session.apply_snapshot(), NOTHING);
    assert_eq!(session.started(1, "t", "r1"), ["@1 (t) started"]);
    session.die(1, TaskExit::with_code(4));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 4"]);
}

#[test]
fn a_launch_before_the_first_snapshot_is_not_baseline() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(7, "older")];
    assert_eq!(session.launch(1, "t", "r1"), ["@1 (t) started"]);
    session.die(1, TaskExit::with_code(4));
    session.die(7, TaskExit::with_code(1));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 4"]);
}

#[test]
fn a_launch_seen_in_the_first_snapshot_is_fully_reported() {
    for dead in [false, true] {
        let mut session = SessionFixture::unseen();
        session.windows = vec![window(1, "t"), window(2, "older")];
        session.window(1).run = Some(run("r1"));
        session.window(2).run = Some(run("r0"));
        if dead {
            session.die(1, TaskExit::with_code(3));
        }
        assert_eq!(session.apply_snapshot(), NOTHING);
        assert_eq!(session.started(1, "t", "r1"), ["@1 (t) started"]);
        assert_eq!(session.started(1, "t", "r1"), NOTHING);
        if !dead {
            session.die(1, TaskExit::with_code(3));
        }
        assert_eq!(session.settle(), ["@1 (t) exited with code 3"]);
    }
}

#[test]
fn an_exit_is_reported_once_from_any_source() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    assert_eq!(session.exited("r1", TaskExit::with_code(5)), NOTHING);
    assert_eq!(session.machine.next_snapshot_at(), Some(session.now));
    // tmux has not noticed the exit yet.
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 5"]);
    session.die(1, TaskExit::with_code(5));
    assert_eq!(session.settle(), NOTHING);
    assert_eq!(session.exited("r1", TaskExit::with_code(5)), NOTHING);
    session.restart();
    assert_eq!(session.exited("r1", TaskExit::with_code(5)), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_exit_without_a_snapshot_is_reported_after_a_delay() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.exited("r1", TaskExit::with_code(0));
    let tick_at = session.machine.next_tick_at().expect("a tick is due");
    session.now = tick_at;
    assert_eq!(session.apply(TaskInput::Tick), ["@1 (t) exited with code 0"]);
    assert_eq!(session.machine.next_tick_at(), None);
}

#[test]
fn a_killed_window_is_reported_as_disappeared() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.exited("r1", TaskExit::by_signal(ExitSignal(1)));
    session.close(1);
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
    assert_eq!(session.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_snapshot_from_before_an_exit_does_not_decide_the_event() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    let before = session.snapshot();
    session.wait(5);
    session.close(1);
    session.exited("r1", TaskExit::by_signal(ExitSignal(1)));
    session.wait(5);
    assert_eq!(session.apply(TaskInput::Snapshot(before)), NOTHING);
    assert!(session.machine.next_snapshot_at().is_some_and(|at| at <= session.now), "another snapshot is requested");
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
}

#[test]
fn two_exits_between_snapshots_are_two_events() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    assert_eq!(session.exited("r1", TaskExit::with_code(1)), NOTHING);
    assert_eq!(session.launch(1, "t", "r2"), ["@1 (t) exited with code 1", "@1 (t) started"]);
    assert_eq!(session.launch(1, "t", "r3"), ["@1 (t) started"]);
    assert_eq!(session.exited("r2", TaskExit::with_code(2)), ["@1 (t) exited with code 2"]);
    assert_eq!(session.exited("r2", TaskExit::with_code(2)), NOTHING);
    session.exited("r3", TaskExit::with_code(3));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 3"]);
}

#[test]
fn an_exit_reported_before_the_launch_waits_for_it() {
    let mut session = SessionFixture::new();
    assert_eq!(session.bell_rang("r1", 1), NOTHING);
    assert_eq!(session.exited_after("r1", TaskExit::with_code(9), 2), NOTHING);
    assert_eq!(session.launch(1, "t", "r1"), ["@1 (t) started"]);
    assert_eq!(
        session.apply_snapshot(),
        ["@1 (t) sent a terminal notification", "@1 (t) sent a terminal notification, then exited with code 9",]
    );
}

#[test]
fn a_launch_known_only_from_a_snapshot_is_fully_reported() {
    let mut session = SessionFixture::new();
    session.windows = vec![window(1, "t")];
    session.window(1).run = Some(run("r1"));
    session.die(1, TaskExit::with_code(7));
    assert_eq!(session.apply_snapshot(), ["@1 (t) started", "@1 (t) exited with code 7"]);
    assert_eq!(session.started(1, "t", "r1"), NOTHING);
    assert_eq!(session.exited("r1", TaskExit::with_code(7)), NOTHING);
}

#[test]
fn a_snapshot_from_before_the_launch_is_ignored() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.die(1, TaskExit::with_code(1));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 1"]);
    let old = session.windows.clone();
    session.launch(1, "t", "r2");
    let now = std::mem::replace(&mut session.windows, old);
    assert_eq!(session.apply_snapshot(), NOTHING);
    session.windows = now;
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_replaced_run_without_an_exit_record_has_an_unknown_exit() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    assert_eq!(session.plan_removal(PlannedRemoval::Replaced(WindowId(1))), NOTHING);
    assert_eq!(session.launch(1, "t", "r2"), ["@1 (t) exited with unknown code", "@1 (t) started"]);
    assert_eq!(session.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(session.settle(), NOTHING);
    session.exited("r2", TaskExit::with_code(0));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 0"]);
}

#[test]
fn the_exit_of_a_replaced_run_may_arrive_before_the_new_start() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.plan_removal(PlannedRemoval::Replaced(WindowId(1)));
    assert_eq!(session.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(session.launch(1, "t", "r2"), ["@1 (t) exited with signal SIGHUP", "@1 (t) started"]);
    session.plan_removal(PlannedRemoval::Replaced(WindowId(1)));
    let confirmed =
        TaskInput::ExitConfirmed { run: run("r2"), exit: TaskExit::with_code(3), bells: 0, output: String::new() };
    assert_eq!(session.apply(confirmed), ["@1 (t) exited with code 3"]);
    assert_eq!(session.launch(1, "t", "r3"), ["@1 (t) started"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_exit_before_cleanup_is_reported() {
    let mut session = SessionFixture::new();
    session.launch(1, "a", "r1");
    session.launch(2, "b", "r2");
    session.launch(3, "c", "r3");
    session.exited("r1", TaskExit::with_code(1));
    assert_eq!(session.plan_removal(PlannedRemoval::KillAll), ["@1 (a) exited with code 1"]);
    session.plan_removal(PlannedRemoval::PruneDead(vec![WindowId(3)]));
    assert_eq!(session.exited("r3", TaskExit::with_code(3)), ["@3 (c) exited with code 3"]);
    session.windows.clear();
    assert_eq!(session.settle(), NOTHING);
    assert_eq!(session.exited("r2", TaskExit::by_signal(ExitSignal(1))), NOTHING);
}

#[test]
fn a_stopped_task_in_a_remaining_window_has_exited() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.plan_removal(PlannedRemoval::Stopped { window: WindowId(1), by_user: true });
    session.die(1, TaskExit::by_signal(ExitSignal(15)));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with signal SIGTERM"]);
    session.close(1);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_bell_is_held_back_for_an_exit() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    assert_eq!(session.bell_rang("r1", 1), NOTHING);
    assert_eq!(session.machine.next_tick_at(), Some(session.now + super::super::BELL_HOLD));
    session.wait(10);
    session.exited_after("r1", TaskExit::with_code(0), 1);
    assert_eq!(
        session.apply_snapshot(),
        ["@1 (t) sent a terminal notification", "@1 (t) sent a terminal notification, then exited with code 0",]
    );
}

#[test]
fn simultaneous_bells_are_one_notification_with_a_count() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    for bells in [3, 4, 4, 9] {
        assert_eq!(session.bell_rang("r1", bells), NOTHING);
    }
    session.wait(40);
    let events = session.events(TaskInput::Tick);
    assert_eq!((events.len(), events[0].bell_count), (1, Some(9)));
    assert_eq!(session.bell_rang("r1", 9), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_exit_reports_pending_bells_first() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.exited_after("r1", TaskExit::with_code(0), 2);
    assert_eq!(session.apply_snapshot().len(), 2);
}

#[test]
fn a_task_disappears_when_its_pane_is_killed_in_a_split_window() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.window(1).pane_id = Some(PaneId(55));
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
    assert_eq!(session.settle(), NOTHING);
    session.close(1);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_respawned_dead_task_has_no_run_id() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.die(1, TaskExit::with_code(0));
    assert_eq!(session.apply_snapshot().len(), 1);
    let respawned = session.window(1);
    (respawned.dead, respawned.exit_code) = (false, None);
    assert_eq!(session.settle(), NOTHING);
    session.die(1, TaskExit::with_code(2));
    let snapshot = session.snapshot();
    let events = session.events(TaskInput::Snapshot(snapshot));
    assert_eq!((events.len(), events[0].exit_code, &events[0].run_id), (1, Some(2), &None));
}

#[test]
fn a_launch_on_a_new_server_ends_tasks_of_the_old_one() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    session.server = Generation { pid: 78, start_time: 2000 };
    session.windows.clear();
    assert_eq!(session.launch(1, "t", "r2"), ["@1 (t) disappeared from session", "@1 (t) started"]);
}

#[test]
fn a_snapshot_of_the_previous_server_repeats_no_event() {
    let mut session = SessionFixture::new();
    session.launch(1, "a", "r1");
    session.windows.push(window(2, "b"));
    assert_eq!(session.apply_snapshot(), ["@2 (b) started"]);
    let before = session.snapshot();
    session.wait(1);
    session.server = Generation { pid: 78, start_time: 2000 };
    session.windows.clear();
    assert_eq!(session.launch(0, "c", "r2").len(), 3);
    assert_eq!(session.apply(TaskInput::Snapshot(before)), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_outdated_snapshot_does_not_start_an_ended_run_again() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    let before = session.snapshot();
    session.close(1);
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
    assert_eq!(session.apply(TaskInput::Snapshot(before)), NOTHING);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn changes_during_a_restart_are_reported_afterwards() {
    let mut session = SessionFixture::new();
    session.launch(1, "a", "r1");
    session.launch(2, "b", "r2");
    session.launch(3, "c", "r3");
    session.apply_snapshot();
    session.restart();
    session.die(1, TaskExit::with_code(3));
    session.close(2);
    assert_eq!(session.apply_snapshot(), ["@2 (b) disappeared from session", "@1 (a) exited with code 3"]);
    session.restart();
    assert_eq!(session.settle(), NOTHING);
}
