//! What facts about single runs tell.

use super::fixture::{SessionFixture, run, window};
use crate::ids::{Generation, PaneId, WindowId};
use crate::task::{ExitSignal, PlannedRemoval, TaskExit, TaskInput};

const NOTHING: [&str; 0] = [];

#[test]
fn a_launch_is_told_once() {
    let mut scene = SessionFixture::new();
    assert_eq!(scene.launch(1, "t", "r1"), ["@1 (t) started"]);
    assert_eq!(scene.started(1, "t", "r1"), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
    scene.restart();
    assert_eq!(scene.started(1, "t", "r1"), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_launch_before_the_first_look_is_no_baseline() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(7, "older")];
    assert_eq!(scene.launch(1, "t", "r1"), ["@1 (t) started"]);
    scene.die(1, TaskExit::with_code(4));
    scene.die(7, TaskExit::with_code(1));
    assert_eq!(scene.look(), ["@1 (t) exited with code 4"]);
}

#[test]
fn a_launch_that_the_first_look_shows_before_it_is_heard_of_is_told_in_full() {
    for dead in [false, true] {
        let mut scene = SessionFixture::unseen();
        scene.windows = vec![window(1, "t"), window(2, "older")];
        scene.window(1).run = Some(run("r1"));
        scene.window(2).run = Some(run("r0"));
        if dead {
            scene.die(1, TaskExit::with_code(3));
        }
        assert_eq!(scene.look(), NOTHING);
        assert_eq!(scene.started(1, "t", "r1"), ["@1 (t) started"]);
        assert_eq!(scene.started(1, "t", "r1"), NOTHING);
        if !dead {
            scene.die(1, TaskExit::with_code(3));
        }
        assert_eq!(scene.settle(), ["@1 (t) exited with code 3"]);
    }
}

#[test]
fn an_end_is_told_once_whoever_tells_it() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    assert_eq!(scene.exited("r1", TaskExit::with_code(5)), NOTHING);
    assert_eq!(scene.machine.next_snapshot_at(), Some(scene.now));
    // tmux itself has not noticed yet.
    assert_eq!(scene.look(), ["@1 (t) exited with code 5"]);
    scene.die(1, TaskExit::with_code(5));
    assert_eq!(scene.settle(), NOTHING);
    assert_eq!(scene.exited("r1", TaskExit::with_code(5)), NOTHING);
    scene.restart();
    assert_eq!(scene.exited("r1", TaskExit::with_code(5)), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn an_end_that_no_look_follows_is_told_after_a_while() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.exited("r1", TaskExit::with_code(0));
    let wakes = scene.machine.next_tick_at().expect("it asks for it");
    scene.now = wakes;
    assert_eq!(scene.apply(TaskInput::Tick), ["@1 (t) exited with code 0"]);
    assert_eq!(scene.machine.next_tick_at(), None);
}

#[test]
fn a_killed_window_disappears_though_its_process_ended() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.exited("r1", TaskExit::by_signal(ExitSignal(1)));
    scene.close(1);
    assert_eq!(scene.look(), ["@1 (t) disappeared from session"]);
    assert_eq!(scene.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_look_from_before_an_end_does_not_tell_what_became_of_the_window() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    let before = scene.snapshot();
    scene.wait(5);
    scene.close(1);
    scene.exited("r1", TaskExit::by_signal(ExitSignal(1)));
    scene.wait(5);
    assert_eq!(scene.apply(TaskInput::Snapshot(before)), NOTHING);
    assert!(scene.machine.next_snapshot_at().is_some_and(|at| at <= scene.now), "it asks for another look");
    assert_eq!(scene.look(), ["@1 (t) disappeared from session"]);
}

#[test]
fn two_exits_between_looks_are_two_events() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    assert_eq!(scene.exited("r1", TaskExit::with_code(1)), NOTHING);
    assert_eq!(scene.launch(1, "t", "r2"), ["@1 (t) exited with code 1", "@1 (t) started"]);
    assert_eq!(scene.launch(1, "t", "r3"), ["@1 (t) started"]);
    assert_eq!(scene.exited("r2", TaskExit::with_code(2)), ["@1 (t) exited with code 2"]);
    assert_eq!(scene.exited("r2", TaskExit::with_code(2)), NOTHING);
    scene.exited("r3", TaskExit::with_code(3));
    assert_eq!(scene.look(), ["@1 (t) exited with code 3"]);
}

#[test]
fn an_end_that_is_heard_before_the_launch_waits_for_it() {
    let mut scene = SessionFixture::new();
    assert_eq!(scene.bell_rang("r1", 1), NOTHING);
    assert_eq!(scene.exited_after("r1", TaskExit::with_code(9), 2), NOTHING);
    assert_eq!(scene.launch(1, "t", "r1"), ["@1 (t) started"]);
    assert_eq!(
        scene.look(),
        ["@1 (t) sent a terminal notification", "@1 (t) sent a terminal notification, then exited with code 9",]
    );
}

#[test]
fn a_launch_that_only_a_look_shows_is_told_in_full() {
    let mut scene = SessionFixture::new();
    scene.windows = vec![window(1, "t")];
    scene.window(1).run = Some(run("r1"));
    scene.die(1, TaskExit::with_code(7));
    assert_eq!(scene.look(), ["@1 (t) started", "@1 (t) exited with code 7"]);
    assert_eq!(scene.started(1, "t", "r1"), NOTHING);
    assert_eq!(scene.exited("r1", TaskExit::with_code(7)), NOTHING);
}

#[test]
fn a_look_from_before_the_launch_says_nothing_of_it() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.die(1, TaskExit::with_code(1));
    assert_eq!(scene.look(), ["@1 (t) exited with code 1"]);
    let old = scene.windows.clone();
    scene.launch(1, "t", "r2");
    let now = std::mem::replace(&mut scene.windows, old);
    assert_eq!(scene.look(), NOTHING);
    scene.windows = now;
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_slot_that_we_restart_tells_only_the_new_start() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    assert_eq!(scene.plan_removal(PlannedRemoval::Replaced(WindowId(1))), NOTHING);
    assert_eq!(scene.launch(1, "t", "r2"), ["@1 (t) started"]);
    assert_eq!(scene.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
    scene.exited("r2", TaskExit::with_code(0));
    assert_eq!(scene.look(), ["@1 (t) exited with code 0"]);
}

#[test]
fn the_end_of_a_run_that_we_replace_may_be_heard_before_the_new_start() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.plan_removal(PlannedRemoval::Replaced(WindowId(1)));
    assert_eq!(scene.exited("r1", TaskExit::by_signal(ExitSignal(1))), NOTHING);
    assert_eq!(scene.launch(1, "t", "r2"), ["@1 (t) started"]);
    scene.plan_removal(PlannedRemoval::Replaced(WindowId(1)));
    let by_itself =
        TaskInput::ExitConfirmed { run: run("r2"), exit: TaskExit::with_code(3), bells: 0, output: String::new() };
    assert_eq!(scene.apply(by_itself), ["@1 (t) exited with code 3"]);
    assert_eq!(scene.launch(1, "t", "r3"), ["@1 (t) started"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn what_ended_before_we_cleaned_up_is_told() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "a", "r1");
    scene.launch(2, "b", "r2");
    scene.launch(3, "c", "r3");
    scene.exited("r1", TaskExit::with_code(1));
    assert_eq!(scene.plan_removal(PlannedRemoval::KillAll), ["@1 (a) exited with code 1"]);
    scene.plan_removal(PlannedRemoval::PruneDead(vec![WindowId(3)]));
    assert_eq!(scene.exited("r3", TaskExit::with_code(3)), ["@3 (c) exited with code 3"]);
    scene.windows.clear();
    assert_eq!(scene.settle(), NOTHING);
    assert_eq!(scene.exited("r2", TaskExit::by_signal(ExitSignal(1))), NOTHING);
}

#[test]
fn a_task_that_is_stopped_and_stays_in_its_window_exits() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.plan_removal(PlannedRemoval::Stopped { window: WindowId(1), by_user: true });
    scene.die(1, TaskExit::by_signal(ExitSignal(15)));
    assert_eq!(scene.look(), ["@1 (t) exited with signal SIGTERM"]);
    scene.close(1);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_bell_waits_a_moment_for_an_exit() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    assert_eq!(scene.bell_rang("r1", 1), NOTHING);
    assert_eq!(scene.machine.next_tick_at(), Some(scene.now + super::super::BELL_HOLD));
    scene.wait(10);
    scene.exited_after("r1", TaskExit::with_code(0), 1);
    assert_eq!(
        scene.look(),
        ["@1 (t) sent a terminal notification", "@1 (t) sent a terminal notification, then exited with code 0",]
    );
}

#[test]
fn bells_that_come_together_are_one_notification_with_their_number() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    for bells in [3, 4, 4, 9] {
        assert_eq!(scene.bell_rang("r1", bells), NOTHING);
    }
    scene.wait(40);
    let events = scene.events(TaskInput::Tick);
    assert_eq!((events.len(), events[0].bell_count), (1, Some(9)));
    assert_eq!(scene.bell_rang("r1", 9), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn an_end_tells_the_bells_that_nobody_had_told() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.exited_after("r1", TaskExit::with_code(0), 2);
    assert_eq!(scene.look().len(), 2);
}

#[test]
fn a_pane_that_was_killed_in_a_window_with_others_has_disappeared() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.window(1).pane_id = Some(PaneId(55));
    assert_eq!(scene.look(), ["@1 (t) disappeared from session"]);
    assert_eq!(scene.settle(), NOTHING);
    scene.close(1);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_dead_task_that_a_user_respawned_is_nobodys_launch() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.die(1, TaskExit::with_code(0));
    assert_eq!(scene.look().len(), 1);
    let live = scene.window(1);
    (live.dead, live.exit_code) = (false, None);
    assert_eq!(scene.settle(), NOTHING);
    scene.die(1, TaskExit::with_code(2));
    let look = scene.snapshot();
    let events = scene.events(TaskInput::Snapshot(look));
    assert_eq!((events.len(), events[0].exit_code, &events[0].run_id), (1, Some(2), &None));
}

#[test]
fn a_launch_on_another_server_ends_what_was_on_the_old_one() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    scene.server = Generation { pid: 78, start_time: 2000 };
    scene.windows.clear();
    assert_eq!(scene.launch(1, "t", "r2"), ["@1 (t) disappeared from session", "@1 (t) started"]);
}

#[test]
fn what_happened_while_nobody_looked_is_told_after_a_restart() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "a", "r1");
    scene.launch(2, "b", "r2");
    scene.launch(3, "c", "r3");
    scene.look();
    scene.restart();
    scene.die(1, TaskExit::with_code(3));
    scene.close(2);
    assert_eq!(scene.look(), ["@2 (b) disappeared from session", "@1 (a) exited with code 3"]);
    scene.restart();
    assert_eq!(scene.settle(), NOTHING);
}
