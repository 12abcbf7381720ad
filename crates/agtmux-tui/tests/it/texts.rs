//! Prompts, stopping agents, and hostile text.

use agtmux_api::wire::KillSignal;
use agtmux_core::sanitize;
use agtmux_tui::update::{RequestFailure, TuiEffect, TuiOutcome};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::fixture::ModelSeat;

#[test]
fn a_prompt_goes_to_the_agent_for_which_it_was_written() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    seat.press('s');
    seat.write("one");
    let control_j = KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL);
    seat.tell(agtmux_tui::update::TuiMessage::Key(control_j));
    seat.write("two");
    let effects = seat.key(KeyCode::Enter);
    let [TuiEffect::Send { action, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(action.text.as_deref(), Some("one\ntwo"));
    assert_eq!(action.guards.r#ref, "runtime:00000000000000000000000000000006");
    assert_eq!(action.guards.if_runtime.as_deref(), Some("00000000000000000000000000000006"));
}

#[test]
fn no_prompt_is_written_into_an_open_dialog() {
    let mut seat = ModelSeat::new(120, 40);
    assert_eq!(seat.press('s'), []);
    assert!(seat.model.overlay.is_none());
    assert!(seat.notice().starts_with("a dialog is open"), "{}", seat.notice());
}

#[test]
fn a_prompt_that_was_not_sent_is_kept() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    seat.press('s');
    seat.write("fix it");
    let effects = seat.key(KeyCode::Enter);
    let [TuiEffect::Send { agent, .. }] = &effects[..] else { panic!("{effects:?}") };
    let failure =
        RequestFailure { code: None, message: "the box has a draft".into(), hint: None, may_have_acted: false };
    seat.done(TuiOutcome::Sent { agent: agent.clone(), result: Err(failure) });
    assert_eq!(seat.notice(), "not sent: the box has a draft");
    seat.press('s');
    assert!(seat.screen().contains("fix it"), "{}", seat.screen());
}

#[test]
fn a_second_text_does_not_begin_with_the_one_that_is_being_sent() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(6);
    seat.press('s');
    seat.write("first");
    let effects = seat.key(KeyCode::Enter);
    let [TuiEffect::Send { agent, .. }] = &effects[..] else { panic!("{effects:?}") };
    let agent = agent.clone();
    seat.press('s');
    assert!(!seat.screen().contains("first"), "{}", seat.screen());
    seat.write("second");
    seat.key(KeyCode::Enter);
    let failed = |may_have_acted| {
        let failure = RequestFailure { code: None, message: "cut off".into(), hint: None, may_have_acted };
        TuiOutcome::Sent { agent: agent.clone(), result: Err(failure) }
    };
    seat.done(failed(true));
    assert_eq!(seat.notice(), "perhaps not sent: cut off");
    seat.press('s');
    assert!(seat.screen().contains("first"), "a failed text is kept: {}", seat.screen());
}

#[test]
fn an_agent_is_stopped_only_after_a_question() {
    for (key, signal) in [('y', KillSignal::Int), ('t', KillSignal::Term), ('K', KillSignal::Kill)] {
        let mut seat = ModelSeat::new(120, 40);
        assert_eq!(seat.press('x'), []);
        let effects = seat.press(key);
        let [TuiEffect::Kill { action, .. }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(action.signal, signal);
        assert_eq!(action.guards.if_runtime.as_deref(), Some("00000000000000000000000000000001"));
    }
    let mut seat = ModelSeat::new(120, 40);
    seat.press('x');
    assert_eq!(seat.press('j'), []);
    assert_eq!(seat.notice(), "nothing was sent");
}

#[test]
fn every_cell_is_printable_text() {
    for (width, height) in [(120, 40), (80, 24), (60, 20), (40, 10), (20, 5), (3, 2)] {
        let mut seat = ModelSeat::new(width, height);
        for pane in [9, 4] {
            seat.select(pane);
            for keys in ["", "l", "g", "g", "e", "q", "o", "q", "?"] {
                seat.write(keys);
                seat.draw();
                for cell in &seat.cells().content {
                    assert_eq!(sanitize::for_terminal(cell.symbol()), cell.symbol());
                }
            }
            seat.press('q');
        }
    }
}
