//! An answer applies to the dialog that was on the screen, or to none.

use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{DialogAnswer, RespondAction, RespondReport, Verification, VerifiedBy};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::DialogKind;
use agtmux_core::state::State;
use agtmux_tui::model::AgentKey;
use agtmux_tui::update::{RequestFailure, TuiEffect, TuiOutcome};
use crossterm::event::KeyCode;

use crate::fixture::ModelSeat;

/// The only request among the effects, which must be an answer.
#[track_caller]
fn answered(effects: Vec<TuiEffect>) -> RespondAction {
    match <[TuiEffect; 1]>::try_from(effects) {
        Ok([TuiEffect::Respond { action, .. }]) => action,
        other => panic!("one answer expected: {other:?}"),
    }
}

fn ask_again(seat: &mut ModelSeat, pane: u32, question: &str) {
    let options = (1..).zip(["Yes", "No"]).map(|(n, label)| DialogOption { n, label: label.into() }).collect();
    let dialog = Dialog::new(DialogKind::Approval, question.into(), Some("rm -r /".into()), options);
    seat.change(pane, |item| item.dialog = Some(dialog));
}

fn key(pane: u32) -> AgentKey {
    AgentKey::Runtime(format!("{pane:032x}"))
}

fn report(seat: &ModelSeat, pane: u32) -> RespondReport {
    let items = &seat.model.fleet.items().panes;
    let item = items.values().find(|item| item.identity.pane_id.0 == pane).expect("recorded");
    RespondReport {
        dialog: item.dialog.clone().expect("a dialog"),
        answered: "1. Yes".into(),
        verified: Verification::Confirmed,
        by: VerifiedBy::Dialog,
        asks_now: None,
        event_ids: Vec::new(),
    }
}

#[test]
fn an_answer_carries_the_agent_and_the_dialog_that_was_shown() {
    for (key, answer) in [('a', DialogAnswer::Approve), ('d', DialogAnswer::Deny), ('2', DialogAnswer::Option(2))] {
        let mut seat = ModelSeat::new(120, 40);
        let action = answered(seat.press(key));
        assert_eq!(action.answer, answer);
        assert_eq!(action.guards.if_dialog.as_deref(), Some("f1"));
        assert_eq!(action.guards.if_runtime.as_deref(), Some("00000000000000000000000000000001"));
        assert!(!action.accept_truncated && !action.guards.force_stale);
    }
}

#[test]
fn a_dialog_that_changed_after_it_was_drawn_is_not_answered() {
    for answer in ['a', 'd', '1'] {
        let mut seat = ModelSeat::new(120, 40);
        ask_again(&mut seat, 1, "Delete everything?");
        assert_eq!(seat.press(answer), []);
        assert!(seat.notice().contains("the dialog changed, so nothing was typed"), "{}", seat.notice());
        assert!(seat.screen().contains("Delete everything?"), "{}", seat.screen());
        assert_eq!(seat.press(answer), [], "the new dialog has not been on the screen long enough to be read");
        seat.wait(Duration::from_millis(300));
        assert_ne!(answered(seat.press(answer)).guards.if_dialog.as_deref(), Some("f1"));
    }
}

#[test]
fn a_dialog_that_is_not_on_the_screen_is_shown_first() {
    let mut seat = ModelSeat::new(50, 12);
    assert_eq!(seat.press('a'), []);
    assert_eq!(seat.notice(), "read the dialog, then press the key again");
    assert!(seat.screen().contains("cargo test --package api login"), "{}", seat.screen());
    seat.wait(Duration::from_secs(1));
    // The terminal is too small for the whole dialog.
    assert_eq!(seat.press('a'), []);
    assert!(seat.notice().starts_with("PgDn shows the rest"), "{}", seat.notice());
    seat.key(KeyCode::PageDown);
    seat.draw();
    seat.key(KeyCode::PageDown);
    seat.draw();
    assert_eq!(answered(seat.press('a')).guards.if_dialog.as_deref(), Some("f1"));
}

#[test]
fn after_an_answer_the_next_waiting_agent_is_selected() {
    let mut seat = ModelSeat::new(120, 40);
    answered(seat.press('1'));
    assert_eq!(seat.press('1'), [], "one answer at a time");
    let result = Ok(report(&seat, 1));
    seat.change(1, |item| (item.state, item.dialog) = (Some(State::Running), None));
    seat.done(TuiOutcome::Responded { key: key(1), result });
    assert_eq!((seat.selected(), seat.notice()), (2, "answered 1. Yes · 2 left"));
}

#[test]
fn the_selection_stays_if_the_person_moved_on_before_the_answer_was_typed() {
    let mut seat = ModelSeat::new(120, 40);
    answered(seat.press('1'));
    seat.select(6);
    let result = Ok(report(&seat, 1));
    seat.done(TuiOutcome::Responded { key: key(1), result });
    assert_eq!(seat.selected(), 6);
}

#[test]
fn the_daemon_may_still_refuse_a_changed_dialog() {
    let mut seat = ModelSeat::new(120, 40);
    answered(seat.press('a'));
    let failure = RequestFailure {
        code: Some(ErrorCode::StateChanged),
        message: "changed".into(),
        hint: None,
        may_have_acted: false,
    };
    seat.done(TuiOutcome::Responded { key: key(1), result: Err(failure) });
    assert_eq!(seat.selected(), 1);
    assert!(seat.notice().contains("nothing was typed"), "{}", seat.notice());
}

#[test]
fn only_options_of_the_dialog_can_be_chosen() {
    let mut seat = ModelSeat::new(120, 40);
    assert_eq!(seat.press('7'), []);
    assert_eq!(seat.notice(), "the dialog has no option 7");
    seat.select(2);
    assert_eq!(seat.press('a'), [], "a question is not an approval");
    seat.select(6);
    assert_eq!(seat.press('1'), []);
    assert_eq!(seat.notice(), "no dialog is open");
}

#[test]
fn several_options_are_marked_and_answered_together() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(2);
    seat.change(2, |item| item.dialog.iter_mut().for_each(|dialog| dialog.multiple = true));
    seat.draw();
    for key in ['1', '2', '1'] {
        assert_eq!(seat.press(key), []);
    }
    assert!(seat.screen().contains("[x] 600"), "{}", seat.screen());
    assert_eq!(answered(seat.key(KeyCode::Enter)).answer, DialogAnswer::Options(vec![2]));
}

#[test]
fn free_text_answers_only_the_dialog_for_which_it_was_written() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('f');
    seat.write("use 100");
    let action = answered(seat.key(KeyCode::Enter));
    assert_eq!((action.answer, action.guards.if_dialog.as_deref()), (DialogAnswer::Text("use 100".into()), Some("f1")));

    let mut seat = ModelSeat::new(120, 40);
    seat.press('f');
    seat.write("use 100");
    ask_again(&mut seat, 1, "Delete everything?");
    assert_eq!(seat.key(KeyCode::Enter), []);
    assert!(seat.notice().contains("nothing was typed"), "{}", seat.notice());
}
