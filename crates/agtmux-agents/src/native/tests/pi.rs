//! Events of a real Pi, forwarded by the extension.

use super::*;

const RUNNING: &[Assertion] = &[Assertion::Running];
const IDLE: &[Assertion] = &[Assertion::Idle];
const DONE: &[Assertion] = &[Assertion::Completed];
const FAILED: &[Assertion] = &[Assertion::Failed];

#[test]
fn pi_reports_turns() {
    let assertions = AdapterTest::new("pi").replay("turns");
    let (started, answered): (&[Assertion], &[Assertion]) = (&[Assertion::Idle, NO_DIALOG], &[NO_DIALOG]);
    assert_eq!(
        assertions,
        [started, RUNNING, DONE, RUNNING, DONE, RUNNING, &[APPROVAL], answered, DONE, RUNNING, IDLE]
    );
}

#[test]
fn a_selection_is_a_question_and_a_confirmation_is_an_approval() {
    let assertions = AdapterTest::new("pi").replay("dialogs");
    let answered: &[Assertion] = &[NO_DIALOG];
    assert_eq!(assertions, [&[QUESTION], answered, RUNNING, &[APPROVAL], answered, DONE]);
}

#[test]
fn a_stopped_turn_is_idle_and_retries_belong_to_their_turn() {
    let assertions = AdapterTest::new("pi").replay("stops");
    assert_eq!(assertions, [RUNNING, IDLE, RUNNING, IDLE, RUNNING, RUNNING, RUNNING, RUNNING, FAILED]);
}

#[test]
fn the_end_of_one_dialog_does_not_close_another() {
    let mut pi = AdapterTest::new("pi");
    let dialogs = pi.lines("dialogs");
    pi.replay_line(&dialogs[0]);
    assert_eq!(pi.replay_line(&dialogs[3]), [APPROVAL]);
    assert_eq!(pi.replay_line(&dialogs[4]), [QUESTION], "the first dialog is still open");
    assert_eq!(pi.replay_line(&dialogs[1]), [NO_DIALOG]);
    assert_eq!(pi.replay_line(&dialogs[1]), [], "no dialog was open");
}

#[test]
fn the_end_of_a_session_makes_no_assertion() {
    let mut pi = AdapterTest::new("pi");
    assert_eq!(pi.event(Source::Hook, "session_shutdown", &json!({"session_id": "s", "reason": "quit"})), []);
}
