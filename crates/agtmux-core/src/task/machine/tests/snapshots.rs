//! What looks alone tell: the rules of the event-flow document.

use super::fixture::{SessionFixture, run, window};
use crate::ids::{Generation, WindowId};
use crate::state::State;
use crate::task::{
    ConversationMessage, Delivery, EventLevel, ExitSignal, PlannedRemoval, TaskEventKind, TaskExit, TaskInput,
    TaskSnapshot,
};

const NOTHING: [&str; 0] = [];

#[test]
fn the_first_look_is_the_baseline() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "live"), window(2, "dead"), window(3, "rang")];
    scene.die(2, TaskExit::with_code(1));
    scene.window(3).bell = true;
    scene.window(3).bell_count = 4;
    assert_eq!(scene.look(), NOTHING);
    assert_eq!(scene.settle(), NOTHING);
    scene.die(1, TaskExit::with_code(0));
    scene.window(3).bell_count = 5;
    assert_eq!(scene.look(), ["@1 (live) exited with code 0"]);
    assert_eq!(scene.settle(), ["@3 (rang) sent a terminal notification"]);
}

#[test]
fn a_launch_that_the_first_look_found_dead_is_not_over_before_it_was_told() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![TaskSnapshot { run: Some(run("r1")), ..window(1, "api") }];
    scene.die(1, TaskExit::with_code(5));
    assert_eq!(scene.look(), NOTHING);
    assert!(!scene.machine.has_ended(&run("r1")), "whoever started it could not store that yet");
    assert_eq!(scene.started(1, "api", "r1"), ["@1 (api) started"]);
    assert_eq!(scene.look(), ["@1 (api) exited with code 5"]);
    assert!(scene.machine.has_ended(&run("r1")));
}

#[test]
fn a_new_live_window_has_started() {
    let mut scene = SessionFixture::new();
    scene.windows = vec![window(12, "api")];
    let look = scene.snapshot();
    let events = scene.events(TaskInput::Snapshot(look));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].kind, events[0].level), (TaskEventKind::Started, EventLevel::Info));
    assert_eq!(events[0].message, "tmux task @12 (api) started");
    assert!(events[0].delivery.notice && !events[0].delivery.message && events[0].delivery.agent_turn.is_none());
    assert_eq!(ConversationMessage::of(&events, None), None);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn an_exit_names_its_code_or_signal() {
    let cases = [
        (TaskExit::with_code(0), "exited with code 0", EventLevel::Info),
        (TaskExit::with_code(2), "exited with code 2", EventLevel::Warning),
        (TaskExit::by_signal(ExitSignal(9)), "exited with signal SIGKILL", EventLevel::Warning),
    ];
    for (exit, words, level) in cases {
        let mut scene = SessionFixture::unseen();
        scene.windows = vec![window(1, "t")];
        scene.look();
        scene.die(1, exit);
        scene.window(1).output_preview = "a\nb\n\nc\nd\n---\nPane is dead (status 2, now)\n".into();
        let look = scene.snapshot();
        let events = scene.events(TaskInput::Snapshot(look));
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].message, format!("tmux task @1 (t) {words}"));
        assert_eq!((events[0].level, events[0].exit_code, events[0].signal), (level, exit.code, exit.signal));
        assert_eq!(events[0].recent_output, ["b", "c", "d"]);
        assert_eq!(scene.settle(), NOTHING);
    }
}

#[test]
fn an_end_that_tmux_cannot_explain_yet_is_looked_at_again() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.die(1, TaskExit::UNKNOWN);
    assert_eq!(scene.look(), NOTHING);
    scene.die(1, TaskExit::with_code(6));
    assert_eq!(scene.look(), ["@1 (t) exited with code 6"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn an_end_that_tmux_never_explains_is_told_without_a_code() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.die(1, TaskExit::UNKNOWN);
    assert_eq!(scene.look(), NOTHING);
    scene.wait(5000);
    assert_eq!(scene.settle(), ["@1 (t) exited with unknown code"]);
}

#[test]
fn a_window_that_is_dead_when_it_is_first_seen_has_exited() {
    let mut scene = SessionFixture::new();
    scene.windows = vec![window(1, "quick")];
    scene.die(1, TaskExit::with_code(3));
    assert_eq!(scene.look(), ["@1 (quick) exited with code 3"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn every_rise_of_the_count_is_a_notification_though_the_flag_stays() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    for count in [1, 2, 5] {
        scene.window(1).bell = true;
        scene.window(1).bell_count = count;
        assert_eq!(scene.settle(), ["@1 (t) sent a terminal notification"]);
    }
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn the_flag_counts_where_nobody_counts() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.window(1).bell = true;
    assert_eq!(scene.settle(), ["@1 (t) sent a terminal notification"]);
    assert_eq!(scene.settle(), NOTHING);
    scene.window(1).bell = false;
    assert_eq!(scene.settle(), NOTHING);
    scene.window(1).bell = true;
    assert_eq!(scene.settle(), ["@1 (t) sent a terminal notification"]);
}

#[test]
fn a_counter_that_comes_after_the_flag_tells_no_bell_twice() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.window(1).bell = true;
    assert_eq!(scene.settle().len(), 1);
    scene.window(1).bell_count = 1;
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_window_that_rings_when_it_is_first_seen_has_rung() {
    let mut scene = SessionFixture::new();
    scene.windows = vec![window(1, "t")];
    scene.window(1).bell_count = 1;
    assert_eq!(scene.settle(), ["@1 (t) started", "@1 (t) sent a terminal notification"]);
}

#[test]
fn a_bell_and_an_exit_in_one_look_are_two_events_and_one_sentence() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(12, "t")];
    scene.look();
    scene.window(12).bell_count = 1;
    scene.window(12).output_preview = "built".into();
    scene.die(12, TaskExit::with_code(0));
    let look = scene.snapshot();
    let events = scene.events(TaskInput::Snapshot(look));
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [TaskEventKind::Notify, TaskEventKind::Exited]);
    assert_eq!(events[0].message, "tmux task @12 (t) sent a terminal notification");
    assert!(events[0].collapsed && !events[1].collapsed);
    assert_eq!(events[0].delivery, Delivery { message: false, agent_turn: None, ..events[1].delivery });
    let said = ConversationMessage::of(&events, Some("id-1")).expect("something is said");
    assert_eq!(
        said.text,
        "[tmux-task notification] tmux task @12 (t) sent a terminal notification, then exited with code 0\n\
         Recent output:\n  built"
    );
    let details = serde_json::to_value(&said.details).expect("writes");
    assert_eq!(details["source"], "extension");
    assert_eq!(details["notUserInput"], true);
    assert_eq!((&details["sessionId"], &details["sessionName"]), (&"id-1".into(), &"pi-foo-1".into()));
    assert_eq!((&details["level"], details["events"].as_array().map(Vec::len)), (&"info".into(), Some(2)));
}

#[test]
fn a_prompt_that_stands_for_two_looks_asks_for_input() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(12, "t")];
    scene.look();
    scene.show_prompt(12, "Proceed? [y/N] ");
    assert_eq!(scene.look(), NOTHING);
    assert_eq!(scene.machine.next_snapshot_at(), Some(scene.now + super::super::PROMPT_STABLE_FOR));
    scene.wait(100);
    assert_eq!(scene.look(), NOTHING);
    scene.wait(200);
    let look = scene.snapshot();
    let events = scene.events(TaskInput::Snapshot(look));
    assert_eq!(events[0].message, "tmux task @12 (t) is waiting for input: Proceed? [y/N]");
    assert_eq!((events[0].prompt.as_deref(), events[0].level), (Some("Proceed? [y/N]"), EventLevel::Warning));
    assert_eq!(scene.machine.next_snapshot_at(), None);
    assert_eq!(scene.settle(), NOTHING);
    assert_eq!(scene.machine.open_prompt(WindowId(12)), Some("Proceed? [y/N]"));
    scene.show_prompt(12, "thanks");
    assert_eq!(scene.settle(), NOTHING);
    assert_eq!(scene.machine.open_prompt(WindowId(12)), None);
}

#[test]
fn a_prompt_above_which_output_goes_on_does_not_stand() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    for line in 0..6 {
        scene.show_prompt(1, "Proceed? [y/N] ");
        scene.window(1).output_preview = format!("line {line}\nProceed? [y/N]");
        scene.wait(400);
        assert_eq!(scene.look(), NOTHING);
    }
}

#[test]
fn a_prompt_is_told_again_only_when_it_was_gone() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.show_prompt(1, "Password: ");
    assert_eq!(scene.settle().len(), 1);
    scene.restart();
    assert_eq!(scene.settle(), NOTHING);
    // Without a look at the cursor it is not known to be gone.
    scene.window(1).cursor_line = None;
    assert_eq!(scene.settle(), NOTHING);
    scene.show_prompt(1, "Password: ");
    assert_eq!(scene.settle(), NOTHING);
    scene.show_prompt(1, "working");
    assert_eq!(scene.settle(), NOTHING);
    scene.show_prompt(1, "Password: ");
    assert_eq!(scene.settle().len(), 1);
}

#[test]
fn an_answer_that_is_typed_does_not_end_the_question() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.show_prompt(1, "Proceed? [y/N] ");
    assert_eq!(scene.settle().len(), 1);
    scene.show_prompt(1, "Proceed? [y/N] ye");
    assert_eq!(scene.settle(), NOTHING);
    scene.show_prompt(1, "Proceed? [y/N] ");
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn the_same_words_further_down_are_asked_anew() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.show_prompt(1, "Password: ");
    assert_eq!(scene.settle().len(), 1);
    scene.window(1).cursor_row = Some(2);
    scene.window(1).output_preview = "Password: \nSorry, try again.\nPassword:".into();
    assert_eq!(scene.settle().len(), 1);
}

#[test]
fn the_same_words_on_the_same_line_are_asked_anew_after_an_answer() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.show_prompt(1, "Select an option: ");
    assert_eq!(scene.settle().len(), 1);
    for answers in 1..=3 {
        scene.window(1).answers = answers;
        assert_eq!(scene.settle().len(), 1, "after {answers}");
        scene.restart();
        assert_eq!(scene.settle(), NOTHING);
    }
    // Where the count could not be read just now nothing is known to be new.
    scene.window(1).answers = 0;
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn each_window_asks_for_itself() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "a"), window(2, "b")];
    scene.look();
    scene.show_prompt(1, "Proceed? [y/N] ");
    scene.show_prompt(2, "Proceed? [y/N] ");
    assert_eq!(scene.settle().len(), 2);
}

#[test]
fn the_dead_and_the_unknown_do_not_ask() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "dead"), window(2, "unknown"), window(3, "no pane")];
    scene.look();
    for id in [1, 2, 3] {
        scene.show_prompt(id, "Proceed? [y/N] ");
    }
    scene.die(1, TaskExit::with_code(0));
    scene.window(2).pane_state_known = false;
    scene.window(3).pane_id = None;
    assert_eq!(scene.settle(), ["@1 (dead) exited with code 0"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn a_live_window_that_is_gone_has_disappeared() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t"), window(2, "u")];
    scene.look();
    scene.close(1);
    assert_eq!(scene.look(), ["@1 (t) disappeared from session"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn what_the_user_killed_is_told_so() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t"), window(2, "u"), window(3, "v")];
    scene.look();
    scene.plan_removal(PlannedRemoval::Stopped { window: WindowId(1), by_user: true });
    scene.plan_removal(PlannedRemoval::Stopped { window: WindowId(2), by_user: false });
    scene.close(1);
    scene.close(2);
    assert_eq!(
        scene.look(),
        ["@1 (t) disappeared from session after the user manually killed it", "@2 (u) disappeared from session",]
    );
}

#[test]
fn cleanup_is_no_disappearance() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "dead"), window(2, "live"), window(3, "slot")];
    scene.look();
    scene.die(1, TaskExit::with_code(0));
    assert_eq!(scene.look().len(), 1);
    scene.plan_removal(PlannedRemoval::PruneDead(vec![WindowId(1)]));
    scene.close(1);
    assert_eq!(scene.settle(), NOTHING);
    scene.plan_removal(PlannedRemoval::Replaced(WindowId(3)));
    scene.close(3);
    assert_eq!(scene.settle(), NOTHING);
    scene.plan_removal(PlannedRemoval::KillAll);
    scene.close(2);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn dead_windows_go_without_a_word_whoever_closes_them() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "dead"), window(2, "live")];
    scene.look();
    scene.die(1, TaskExit::with_code(0));
    scene.look();
    scene.close(1);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn what_was_to_be_taken_away_and_stayed_can_disappear_later() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.plan_removal(PlannedRemoval::KillAll);
    scene.wait(11_000);
    assert_eq!(scene.look(), NOTHING);
    scene.close(1);
    assert_eq!(scene.look(), ["@1 (t) disappeared from session"]);
}

#[test]
fn a_missing_session_tells_nothing_by_itself_and_live_tasks_disappear_once() {
    let mut scene = SessionFixture::unseen();
    assert_eq!(scene.settle(), NOTHING);
    scene.windows = vec![window(1, "live"), window(2, "dead")];
    scene.die(2, TaskExit::with_code(0));
    scene.settle();
    scene.windows.clear();
    assert_eq!(scene.look(), ["@1 (live) disappeared from session"]);
    assert_eq!(scene.settle(), NOTHING);
}

#[test]
fn the_same_name_in_another_window_is_another_task() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.windows = vec![window(2, "t")];
    assert_eq!(scene.look(), ["@1 (t) disappeared from session", "@2 (t) started"]);
}

#[test]
fn the_same_ids_on_another_server_are_other_tasks() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.server = Generation { pid: 78, start_time: 2000 };
    assert_eq!(scene.look(), ["@1 (t) disappeared from session", "@1 (t) started"]);
}

#[test]
fn a_dead_window_that_somebody_respawned_can_exit_again() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.die(1, TaskExit::with_code(0));
    assert_eq!(scene.look(), ["@1 (t) exited with code 0"]);
    scene.windows = vec![window(1, "t")];
    assert_eq!(scene.settle(), NOTHING);
    scene.die(1, TaskExit::with_code(1));
    assert_eq!(scene.look(), ["@1 (t) exited with code 1"]);
}

#[test]
fn an_end_that_was_told_is_a_fresh_one_until_a_look_shows_it() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "t", "r1");
    let (run, output, exit) = (run("r1"), String::new(), TaskExit::with_code(0));
    assert!(!scene.machine.has_just_ended(&run) && !scene.machine.exit_is_known(WindowId(1)));
    assert_eq!(scene.events(TaskInput::ExitConfirmed { run: run.clone(), exit, bells: 0, output }).len(), 1);
    for _ in 0..2 {
        assert!(scene.machine.has_just_ended(&run) && scene.machine.exit_is_known(WindowId(1)));
        assert_eq!(scene.look(), NOTHING);
    }
    scene.die(1, exit);
    assert_eq!(scene.look(), NOTHING);
    assert!(!scene.machine.has_just_ended(&run) && scene.machine.exit_is_known(WindowId(1)));
    // What somebody started there instead is none of ours, and has not ended.
    scene.window(1).dead = false;
    scene.look();
    assert!(!scene.machine.has_just_ended(&run) && !scene.machine.exit_is_known(WindowId(1)));
    scene.die(1, TaskExit::UNKNOWN);
    scene.look();
    assert!(!scene.machine.exit_is_known(WindowId(1)), "tmux may tell more of it");
}

#[test]
fn secrets_are_told_to_nobody() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "t")];
    scene.look();
    scene.window(1).output_preview = "export API_KEY=abcdef0123456789abcdef".into();
    scene.look();
    let stored = serde_json::to_string(&scene.machine).expect("writes");
    scene.die(1, TaskExit::with_code(0));
    let look = scene.snapshot();
    let told = serde_json::to_string(&scene.events(TaskInput::Snapshot(look))).expect("writes");
    for text in [stored, told] {
        assert!(!text.contains("abcdef0123456789") && text.contains("redacted"), "{text}");
    }
}

#[test]
fn a_pane_that_is_respawned_again_and_again_is_not_remembered_each_time() {
    let mut scene = SessionFixture::new();
    scene.launch(1, "a", "r1");
    let mut sizes = Vec::new();
    for _ in 0..50 {
        scene.die(1, TaskExit::with_code(0));
        scene.look();
        scene.window(1).dead = false;
        scene.look();
        sizes.push(serde_json::to_string(&scene.machine).expect("writes").len());
    }
    assert_eq!(sizes[1], sizes[49], "{sizes:?}");
}

#[test]
fn what_is_said_of_several_events_is_one_message() {
    let mut scene = SessionFixture::unseen();
    scene.windows = vec![window(1, "good"), window(2, "bad"), window(3, "gone")];
    scene.look();
    scene.windows.push(window(4, "new"));
    scene.die(1, TaskExit::with_code(0));
    scene.die(2, TaskExit::with_code(2));
    scene.close(3);
    let look = scene.snapshot();
    let events = scene.events(TaskInput::Snapshot(look));
    let said = ConversationMessage::of(&events, None).expect("something is said");
    assert_eq!(
        said.text,
        "[tmux-task notification] tmux task @3 (gone) disappeared from session\n\
         tmux task @1 (good) exited with code 0\n\
         tmux task @2 (bad) exited with code 2"
    );
    assert_eq!(
        (said.details.level, said.details.session_id, said.custom_type.as_str()),
        (EventLevel::Warning, None, "tmux-task-event")
    );
    let good: Vec<_> = events.iter().filter(|event| event.task == "good" || event.task == "new").cloned().collect();
    let said = ConversationMessage::of(&good, None).expect("something is said");
    assert_eq!((said.text.lines().count(), said.details.level), (1, EventLevel::Info), "a start is not spoken of");
    let states: Vec<_> = events.iter().map(|event| event.state()).collect();
    let (failed, well) = (Some(State::Error), Some(State::Completed));
    assert_eq!(states, [None, well, failed, Some(State::Running)]);
}
