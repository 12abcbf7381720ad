//! The keyboard is in the pane of an agent.

use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{SendAction, SendReport, Verification, VerifiedBy};
use agtmux_tui::model::AgentKey;
use agtmux_tui::update::{RequestFailure, TuiEffect, TuiOutcome, next_due};
use crossterm::event::{KeyCode, MouseButton, MouseEventKind};

use crate::fixture::ModelSeat;

/// Puts the keyboard into this pane.
fn typing_into(pane: u32) -> ModelSeat {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(pane);
    assert_eq!(seat.key(KeyCode::Tab), []);
    seat.draw();
    seat.wait(Duration::from_secs(1));
    seat
}

/// The request of the only key among the effects.
#[track_caller]
fn typed(effects: &[TuiEffect]) -> &SendAction {
    let keys: Vec<_> = effects.iter().filter(|effect| matches!(effect, TuiEffect::TypeKey { .. })).collect();
    match keys[..] {
        [TuiEffect::TypeKey { action, .. }] => action,
        _ => panic!("one key expected: {effects:?}"),
    }
}

fn key(pane: u32) -> AgentKey {
    AgentKey::Runtime(format!("{pane:032x}"))
}

fn done(seat: &mut ModelSeat, pane: u32) -> Vec<TuiEffect> {
    let report = SendReport {
        verified: Verification::Inconclusive,
        by: VerifiedBy::Nothing,
        attempts: 0,
        bytes: 0,
        event_ids: Vec::new(),
        left_copy_mode: false,
    };
    seat.done(TuiOutcome::Typed { key: key(pane), result: Ok(report) })
}

#[test]
fn keys_are_typed_one_after_the_other_into_the_same_agent() {
    let mut seat = typing_into(3);
    let effects = seat.press('q');
    let action = typed(&effects);
    assert_eq!((&action.keys[..], action.text.as_deref()), (&["q".to_owned()][..], None));
    assert_eq!(action.guards.if_runtime.as_deref(), Some("00000000000000000000000000000003"));
    assert!(action.guards.if_dialog.is_none() && !action.guards.force_stale);
    assert_eq!(seat.press('x'), [], "the key before is on its way");
    assert_eq!(seat.key(KeyCode::Enter), []);
    assert_eq!(typed(&done(&mut seat, 3)).keys, ["x"]);
    assert_eq!(typed(&done(&mut seat, 3)).keys, ["Enter"]);
    assert_eq!(done(&mut seat, 3), []);
}

#[test]
fn two_escapes_give_the_keyboard_back_and_one_goes_to_the_pane() {
    let mut seat = typing_into(3);
    assert_eq!(seat.key(KeyCode::Esc), []);
    assert_eq!(seat.key(KeyCode::Esc), []);
    assert!(seat.model.typing.is_none());
    seat.press('j');
    assert_ne!(seat.selected(), 3, "keys are for the list again");

    let mut seat = typing_into(3);
    seat.key(KeyCode::Esc);
    assert_eq!(next_due(&seat.model, seat.now), Some(seat.now + Duration::from_millis(400)));
    assert_eq!(typed(&seat.wait(Duration::from_millis(400))).keys, ["Escape"]);
    seat.key(KeyCode::Esc);
    assert_eq!(seat.press('a'), []);
    assert_eq!(typed(&done(&mut seat, 3)).keys, ["Escape"], "an escape before another key is typed first");
    assert_eq!(typed(&done(&mut seat, 3)).keys, ["a"]);
}

#[test]
fn a_key_for_a_dialog_is_bound_to_the_dialog_on_the_screen() {
    let mut seat = typing_into(1);
    let effects = seat.key(KeyCode::Down);
    assert_eq!(typed(&effects).guards.if_dialog.as_deref(), Some("f1"));
    done(&mut seat, 1);
    seat.change(1, |item| item.dialog.iter_mut().for_each(|dialog| dialog.fingerprint = "f9".into()));
    assert_eq!(seat.key(KeyCode::Enter), [], "the new dialog is not on the screen yet");
    assert!(seat.notice().contains("just appeared"), "{}", seat.notice());
    seat.draw();
    assert_eq!(seat.key(KeyCode::Enter), [], "nor long enough to be read");
    seat.wait(Duration::from_millis(300));
    assert_eq!(typed(&seat.key(KeyCode::Enter)).guards.if_dialog.as_deref(), Some("f9"));
}

#[test]
fn after_a_refused_key_the_keys_that_wait_are_dropped() {
    let mut seat = typing_into(3);
    seat.press('a');
    seat.press('b');
    let failure = RequestFailure {
        code: Some(ErrorCode::Precondition),
        message: "a dialog".into(),
        hint: None,
        may_have_acted: false,
    };
    assert_eq!(seat.done(TuiOutcome::Typed { key: key(3), result: Err(failure) }), []);
    assert_eq!(seat.notice(), "the key was not typed: a dialog");
    assert_eq!(typed(&seat.press('c')).keys, ["c"]);
}

#[test]
fn the_keyboard_comes_back_when_the_agent_ends_or_another_row_is_clicked() {
    let mut seat = typing_into(3);
    seat.change(3, |item| {
        (item.runtime_id, item.agent_type, item.state, item.since, item.dialog) = (None, None, None, None, None);
    });
    assert!(seat.model.typing.is_none());
    assert!(seat.notice().contains("has ended"), "{}", seat.notice());

    let mut seat = typing_into(3);
    seat.mouse(MouseEventKind::Down(MouseButton::Left), 5, 2);
    assert!(seat.model.typing.is_none());
}
