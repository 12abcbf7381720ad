//! What the extension passed on of a real Pi.

use super::*;

const RUNNING: &[Assertion] = &[Assertion::Running];
const IDLE: &[Assertion] = &[Assertion::Idle];
const DONE: &[Assertion] = &[Assertion::Completed];
const FAILED: &[Assertion] = &[Assertion::Failed];

#[test]
fn turns_of_pi() {
    let told = Story::of("pi").tell("turns");
    let (started, answered): (&[Assertion], &[Assertion]) = (&[Assertion::Idle, NOTHING], &[NOTHING]);
    assert_eq!(told, [started, RUNNING, DONE, RUNNING, DONE, RUNNING, &[ASKS], answered, DONE, RUNNING, IDLE]);
}

#[test]
fn a_selection_is_a_question_and_a_yes_or_no_an_approval() {
    let told = Story::of("pi").tell("dialogs");
    let answered: &[Assertion] = &[NOTHING];
    assert_eq!(told, [&[QUESTION], answered, RUNNING, &[ASKS], answered, DONE]);
}

#[test]
fn who_is_stopped_has_not_failed_and_each_retry_is_a_part_of_the_turn() {
    let told = Story::of("pi").tell("stops");
    assert_eq!(told, [RUNNING, IDLE, RUNNING, IDLE, RUNNING, RUNNING, RUNNING, RUNNING, FAILED]);
}

#[test]
fn one_dialog_that_ends_does_not_answer_for_another() {
    let mut pi = Story::of("pi");
    let dialogs = pi.lines("dialogs");
    pi.line(&dialogs[0]);
    assert_eq!(pi.line(&dialogs[3]), [ASKS]);
    assert_eq!(pi.line(&dialogs[4]), [QUESTION], "the first is still open");
    assert_eq!(pi.line(&dialogs[1]), [NOTHING]);
    assert_eq!(pi.line(&dialogs[1]), [], "nothing was open");
}

#[test]
fn the_end_of_a_session_is_left_to_the_process() {
    let mut pi = Story::of("pi");
    assert_eq!(pi.event(Source::Hook, "session_shutdown", &json!({"session_id": "s", "reason": "quit"})), []);
}
