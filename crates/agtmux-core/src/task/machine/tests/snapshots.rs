//! Events caused by snapshots alone.

use super::fixture::{SessionFixture, run, window};
use crate::ids::{Generation, WindowId};
use crate::state::State;
use crate::task::{
    ConversationMessage, Delivery, EventLevel, ExitSignal, PlannedRemoval, TaskEventKind, TaskExit, TaskInput,
    TaskSnapshot,
};

const NOTHING: [&str; 0] = [];

#[test]
fn the_first_snapshot_is_the_baseline() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "live"), window(2, "dead"), window(3, "rang")];
    session.die(2, TaskExit::with_code(1));
    session.window(3).bell = true;
    session.window(3).bell_count = 4;
    assert_eq!(session.apply_snapshot(), NOTHING);
    assert_eq!(session.settle(), NOTHING);
    session.die(1, TaskExit::with_code(0));
    session.window(3).bell_count = 5;
    assert_eq!(session.apply_snapshot(), ["@1 (live) exited with code 0"]);
    assert_eq!(session.settle(), ["@3 (rang) sent a terminal notification"]);
}

#[test]
fn a_launch_found_dead_in_the_baseline_is_not_ended_before_its_report() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![TaskSnapshot { run: Some(run("r1")), ..window(1, "api") }];
    session.die(1, TaskExit::with_code(5));
    assert_eq!(session.apply_snapshot(), NOTHING);
    assert!(!session.machine.has_ended(&run("r1")), "the launcher may not have stored the launch yet");
    assert_eq!(session.started(1, "api", "r1"), ["@1 (api) started"]);
    assert_eq!(session.apply_snapshot(), ["@1 (api) exited with code 5"]);
    assert!(session.machine.has_ended(&run("r1")));
}

#[test]
fn a_new_live_window_is_reported_as_started() {
    let mut session = SessionFixture::new();
    session.windows = vec![window(12, "api")];
    let snapshot = session.snapshot();
    let events = session.events(TaskInput::Snapshot(snapshot));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].kind, events[0].level), (TaskEventKind::Started, EventLevel::Info));
    assert_eq!(events[0].message, "tmux task @12 (api) started");
    assert!(events[0].delivery.notice && !events[0].delivery.message && events[0].delivery.agent_turn.is_none());
    assert_eq!(ConversationMessage::of(&events, None), None);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_exit_names_its_code_or_signal() {
    let cases = [
        (TaskExit::with_code(0), "exited with code 0", EventLevel::Info),
        (TaskExit::with_code(2), "exited with code 2", EventLevel::Warning),
        (TaskExit::by_signal(ExitSignal(9)), "exited with signal SIGKILL", EventLevel::Warning),
    ];
    for (exit, text, level) in cases {
        let mut session = SessionFixture::unseen();
        session.windows = vec![window(1, "t")];
        session.apply_snapshot();
        session.die(1, exit);
        session.window(1).output_preview = "a\nb\n\nc\nd\n---\nPane is dead (status 2, now)\n".into();
        let snapshot = session.snapshot();
        let events = session.events(TaskInput::Snapshot(snapshot));
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].message, format!("tmux task @1 (t) {text}"));
        assert_eq!((events[0].level, events[0].exit_code, events[0].signal), (level, exit.code, exit.signal));
        assert_eq!(events[0].recent_output, ["b", "c", "d"]);
        assert_eq!(session.settle(), NOTHING);
    }
}

#[test]
fn an_exit_without_status_waits_for_another_snapshot() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.die(1, TaskExit::UNKNOWN);
    assert_eq!(session.apply_snapshot(), NOTHING);
    session.die(1, TaskExit::with_code(6));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 6"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_exit_without_status_is_finally_reported_as_unknown() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.die(1, TaskExit::UNKNOWN);
    assert_eq!(session.apply_snapshot(), NOTHING);
    session.wait(5000);
    assert_eq!(session.settle(), ["@1 (t) exited with unknown code"]);
}

#[test]
fn a_window_first_seen_dead_is_reported_as_exited() {
    let mut session = SessionFixture::new();
    session.windows = vec![window(1, "quick")];
    session.die(1, TaskExit::with_code(3));
    assert_eq!(session.apply_snapshot(), ["@1 (quick) exited with code 3"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn every_increase_of_the_bell_count_is_a_notification() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    for count in [1, 2, 5] {
        session.window(1).bell = true;
        session.window(1).bell_count = count;
        assert_eq!(session.settle(), ["@1 (t) sent a terminal notification"]);
    }
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn the_bell_flag_is_used_without_a_bell_counter() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.window(1).bell = true;
    assert_eq!(session.settle(), ["@1 (t) sent a terminal notification"]);
    assert_eq!(session.settle(), NOTHING);
    session.window(1).bell = false;
    assert_eq!(session.settle(), NOTHING);
    session.window(1).bell = true;
    assert_eq!(session.settle(), ["@1 (t) sent a terminal notification"]);
}

#[test]
fn a_counter_that_follows_the_flag_reports_no_bell_twice() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.window(1).bell = true;
    assert_eq!(session.settle().len(), 1);
    session.window(1).bell_count = 1;
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_bell_in_the_first_snapshot_of_a_window_is_reported() {
    let mut session = SessionFixture::new();
    session.windows = vec![window(1, "t")];
    session.window(1).bell_count = 1;
    assert_eq!(session.settle(), ["@1 (t) started", "@1 (t) sent a terminal notification"]);
}

#[test]
fn a_bell_and_an_exit_in_one_snapshot_are_two_events_and_one_message() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(12, "t")];
    session.apply_snapshot();
    session.window(12).bell_count = 1;
    session.window(12).output_preview = "built".into();
    session.die(12, TaskExit::with_code(0));
    let snapshot = session.snapshot();
    let events = session.events(TaskInput::Snapshot(snapshot));
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [TaskEventKind::Notify, TaskEventKind::Exited]);
    assert_eq!(events[0].message, "tmux task @12 (t) sent a terminal notification");
    assert!(events[0].collapsed && !events[1].collapsed);
    assert_eq!(events[0].delivery, Delivery { message: false, agent_turn: None, ..events[1].delivery });
    let message = ConversationMessage::of(&events, Some("id-1")).expect("a message");
    assert_eq!(
        message.text,
        "[tmux-task notification] tmux task @12 (t) sent a terminal notification, then exited with code 0\n\
         Recent output:\n  built"
    );
    let details = serde_json::to_value(&message.details).expect("writes");
    assert_eq!(details["source"], "extension");
    assert_eq!(details["notUserInput"], true);
    assert_eq!((&details["sessionId"], &details["sessionName"]), (&"id-1".into(), &"pi-foo-1".into()));
    assert_eq!((&details["level"], details["events"].as_array().map(Vec::len)), (&"info".into(), Some(2)));
}

#[test]
fn a_prompt_stable_over_two_snapshots_is_reported() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(12, "t")];
    session.apply_snapshot();
    session.show_prompt(12, "Proceed? [y/N] ");
    assert_eq!(session.apply_snapshot(), NOTHING);
    assert_eq!(session.machine.next_snapshot_at(), Some(session.now + super::super::PROMPT_STABLE_FOR));
    session.wait(100);
    assert_eq!(session.apply_snapshot(), NOTHING);
    session.wait(200);
    let snapshot = session.snapshot();
    let events = session.events(TaskInput::Snapshot(snapshot));
    assert_eq!(events[0].message, "tmux task @12 (t) is waiting for input: Proceed? [y/N]");
    assert_eq!((events[0].prompt.as_deref(), events[0].level), (Some("Proceed? [y/N]"), EventLevel::Warning));
    assert_eq!(session.machine.next_snapshot_at(), None);
    assert_eq!(session.settle(), NOTHING);
    assert_eq!(session.machine.open_prompt(WindowId(12)), Some("Proceed? [y/N]"));
    session.show_prompt(12, "thanks");
    assert_eq!(session.settle(), NOTHING);
    assert_eq!(session.machine.open_prompt(WindowId(12)), None);
}

#[test]
fn a_prompt_with_changing_output_is_not_stable() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    for line in 0..6 {
        session.show_prompt(1, "Proceed? [y/N] ");
        session.window(1).output_preview = format!("line {line}\nProceed? [y/N]");
        session.wait(400);
        assert_eq!(session.apply_snapshot(), NOTHING);
    }
}

#[test]
fn a_prompt_is_reported_again_only_after_it_disappeared() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.show_prompt(1, "Password: ");
    assert_eq!(session.settle().len(), 1);
    session.restart();
    assert_eq!(session.settle(), NOTHING);
    // Without the cursor line, the machine cannot know whether the prompt is gone.
    session.window(1).cursor_line = None;
    assert_eq!(session.settle(), NOTHING);
    session.show_prompt(1, "Password: ");
    assert_eq!(session.settle(), NOTHING);
    session.show_prompt(1, "working");
    assert_eq!(session.settle(), NOTHING);
    session.show_prompt(1, "Password: ");
    assert_eq!(session.settle().len(), 1);
}

#[test]
fn a_partly_typed_answer_does_not_end_the_prompt() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.show_prompt(1, "Proceed? [y/N] ");
    assert_eq!(session.settle().len(), 1);
    session.show_prompt(1, "Proceed? [y/N] ye");
    assert_eq!(session.settle(), NOTHING);
    session.show_prompt(1, "Proceed? [y/N] ");
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn the_same_prompt_on_a_later_line_is_new() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.show_prompt(1, "Password: ");
    assert_eq!(session.settle().len(), 1);
    session.window(1).cursor_row = Some(2);
    session.window(1).output_preview = "Password: \nSorry, try again.\nPassword:".into();
    assert_eq!(session.settle().len(), 1);
}

#[test]
fn the_same_prompt_on_the_same_line_is_new_after_an_answer() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.show_prompt(1, "Select an option: ");
    assert_eq!(session.settle().len(), 1);
    for answers in 1..=3 {
        session.window(1).answers = answers;
        assert_eq!(session.settle().len(), 1, "after {answers}");
        session.restart();
        assert_eq!(session.settle(), NOTHING);
    }
    // Without the answer count, the machine cannot know whether the prompt is new.
    session.window(1).answers = 0;
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn prompts_are_tracked_per_window() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "a"), window(2, "b")];
    session.apply_snapshot();
    session.show_prompt(1, "Proceed? [y/N] ");
    session.show_prompt(2, "Proceed? [y/N] ");
    assert_eq!(session.settle().len(), 2);
}

#[test]
fn dead_and_unknown_panes_report_no_prompt() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "dead"), window(2, "unknown"), window(3, "no pane")];
    session.apply_snapshot();
    for id in [1, 2, 3] {
        session.show_prompt(id, "Proceed? [y/N] ");
    }
    session.die(1, TaskExit::with_code(0));
    session.window(2).pane_state_known = false;
    session.window(3).pane_id = None;
    assert_eq!(session.settle(), ["@1 (dead) exited with code 0"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_missing_live_window_is_reported_as_disappeared() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t"), window(2, "u")];
    session.apply_snapshot();
    session.close(1);
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn a_kill_by_the_user_is_named_in_the_message() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t"), window(2, "u"), window(3, "v")];
    session.apply_snapshot();
    session.plan_removal(PlannedRemoval::Stopped { window: WindowId(1), by_user: true });
    session.plan_removal(PlannedRemoval::Stopped { window: WindowId(2), by_user: false });
    session.close(1);
    session.close(2);
    assert_eq!(
        session.apply_snapshot(),
        ["@1 (t) disappeared from session after the user manually killed it", "@2 (u) disappeared from session",]
    );
}

#[test]
fn cleanup_is_not_reported_as_disappearance() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "dead"), window(2, "live"), window(3, "slot")];
    session.apply_snapshot();
    session.die(1, TaskExit::with_code(0));
    assert_eq!(session.apply_snapshot().len(), 1);
    session.plan_removal(PlannedRemoval::PruneDead(vec![WindowId(1)]));
    session.close(1);
    assert_eq!(session.settle(), NOTHING);
    session.plan_removal(PlannedRemoval::Replaced(WindowId(3)));
    session.close(3);
    assert_eq!(session.settle(), NOTHING);
    session.plan_removal(PlannedRemoval::KillAll);
    session.close(2);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn closing_a_dead_window_is_not_reported() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "dead"), window(2, "live")];
    session.apply_snapshot();
    session.die(1, TaskExit::with_code(0));
    session.apply_snapshot();
    session.close(1);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn an_expired_removal_does_not_hide_a_later_disappearance() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.plan_removal(PlannedRemoval::KillAll);
    session.wait(11_000);
    assert_eq!(session.apply_snapshot(), NOTHING);
    session.close(1);
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session"]);
}

#[test]
fn a_missing_session_reports_each_live_task_once() {
    let mut session = SessionFixture::unseen();
    assert_eq!(session.settle(), NOTHING);
    session.windows = vec![window(1, "live"), window(2, "dead")];
    session.die(2, TaskExit::with_code(0));
    session.settle();
    session.windows.clear();
    assert_eq!(session.apply_snapshot(), ["@1 (live) disappeared from session"]);
    assert_eq!(session.settle(), NOTHING);
}

#[test]
fn the_same_name_in_another_window_is_a_different_task() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.windows = vec![window(2, "t")];
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session", "@2 (t) started"]);
}

#[test]
fn the_same_ids_on_another_server_are_different_tasks() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.server = Generation { pid: 78, start_time: 2000 };
    assert_eq!(session.apply_snapshot(), ["@1 (t) disappeared from session", "@1 (t) started"]);
}

#[test]
fn a_respawned_window_can_exit_again() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.die(1, TaskExit::with_code(0));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 0"]);
    session.windows = vec![window(1, "t")];
    assert_eq!(session.settle(), NOTHING);
    session.die(1, TaskExit::with_code(1));
    assert_eq!(session.apply_snapshot(), ["@1 (t) exited with code 1"]);
}

#[test]
fn a_reported_exit_is_recent_until_a_snapshot_shows_it() {
    let mut session = SessionFixture::new();
    session.launch(1, "t", "r1");
    let (run, output, exit) = (run("r1"), String::new(), TaskExit::with_code(0));
    assert!(!session.machine.has_just_ended(&run) && !session.machine.exit_is_known(WindowId(1)));
    assert_eq!(session.events(TaskInput::ExitConfirmed { run: run.clone(), exit, bells: 0, output }).len(), 1);
    for _ in 0..2 {
        assert!(session.machine.has_just_ended(&run) && session.machine.exit_is_known(WindowId(1)));
        assert_eq!(session.apply_snapshot(), NOTHING);
    }
    session.die(1, exit);
    assert_eq!(session.apply_snapshot(), NOTHING);
    assert!(!session.machine.has_just_ended(&run) && session.machine.exit_is_known(WindowId(1)));
    // A user respawns the pane. The new process is not the run, and it has not ended.
    session.window(1).dead = false;
    session.apply_snapshot();
    assert!(!session.machine.has_just_ended(&run) && !session.machine.exit_is_known(WindowId(1)));
    session.die(1, TaskExit::UNKNOWN);
    session.apply_snapshot();
    assert!(!session.machine.exit_is_known(WindowId(1)), "tmux may still learn the exit status");
}

#[test]
fn secrets_are_redacted_in_events_and_stored_state() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "t")];
    session.apply_snapshot();
    session.window(1).output_preview = "export API_KEY=abcdef0123456789abcdef".into();
    session.apply_snapshot();
    let stored = serde_json::to_string(&session.machine).expect("writes");
    session.die(1, TaskExit::with_code(0));
    let snapshot = session.snapshot();
    let reported = serde_json::to_string(&session.events(TaskInput::Snapshot(snapshot))).expect("writes");
    for text in [stored, reported] {
        assert!(!text.contains("abcdef0123456789") && text.contains("redacted"), "{text}");
    }
}

#[test]
fn repeated_respawns_do_not_grow_the_stored_state() {
    let mut session = SessionFixture::new();
    session.launch(1, "a", "r1");
    let mut sizes = Vec::new();
    for _ in 0..50 {
        session.die(1, TaskExit::with_code(0));
        session.apply_snapshot();
        session.window(1).dead = false;
        session.apply_snapshot();
        sizes.push(serde_json::to_string(&session.machine).expect("writes").len());
    }
    assert_eq!(sizes[1], sizes[49], "{sizes:?}");
}

#[test]
fn several_events_share_one_message() {
    let mut session = SessionFixture::unseen();
    session.windows = vec![window(1, "good"), window(2, "bad"), window(3, "gone")];
    session.apply_snapshot();
    session.windows.push(window(4, "new"));
    session.die(1, TaskExit::with_code(0));
    session.die(2, TaskExit::with_code(2));
    session.close(3);
    let snapshot = session.snapshot();
    let events = session.events(TaskInput::Snapshot(snapshot));
    let message = ConversationMessage::of(&events, None).expect("a message");
    assert_eq!(
        message.text,
        "[tmux-task notification] tmux task @3 (gone) disappeared from session\n\
         tmux task @1 (good) exited with code 0\n\
         tmux task @2 (bad) exited with code 2"
    );
    assert_eq!(
        (message.details.level, message.details.session_id, message.custom_type.as_str()),
        (EventLevel::Warning, None, "tmux-task-event")
    );
    let good: Vec<_> = events.iter().filter(|event| event.task == "good" || event.task == "new").cloned().collect();
    let message = ConversationMessage::of(&good, None).expect("a message");
    assert_eq!((message.text.lines().count(), message.details.level), (1, EventLevel::Info), "a start has no message");
    let states: Vec<_> = events.iter().map(|event| event.state()).collect();
    let (failed, well) = (Some(State::Error), Some(State::Completed));
    assert_eq!(states, [None, well, failed, Some(State::Running)]);
}
