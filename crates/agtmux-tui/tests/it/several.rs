//! One action on several agents, and identical dialogs that are answered together.

use std::time::Duration;

use agtmux_api::wire::DialogAnswer;
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::DialogKind;
use agtmux_core::ids::AgentType;
use agtmux_core::state::State;
use agtmux_tui::update::TuiEffect;
use crossterm::event::KeyCode;

use crate::fixture::ModelSeat;

/// Makes these agents ask whether they may run this command.
fn ask(seat: &mut ModelSeat, panes: &[u32], command: &str) {
    for pane in panes {
        let options = (1..).zip(["Yes", "No"]).map(|(n, label)| DialogOption { n, label: label.into() }).collect();
        let dialog = Dialog::new(DialogKind::Approval, "Run it?".into(), Some(command.into()), options);
        seat.change(*pane, |item| {
            (item.state, item.dialog) = (Some(State::WaitingApproval), Some(dialog));
            item.agent_type = Some(AgentType::new("claude"));
        });
    }
    seat.draw();
    seat.wait(Duration::from_secs(5));
}

#[test]
fn a_prompt_goes_to_all_selected_agents() {
    let mut seat = ModelSeat::new(120, 40);
    for pane in [3, 6] {
        seat.select(pane);
        seat.press(' ');
    }
    seat.press('s');
    assert!(seat.screen().contains("2 agents: "), "{}", seat.screen());
    seat.write("stop for today");
    let effects = seat.key(KeyCode::Enter);
    let sent: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            TuiEffect::Send { action, .. } => (action.text.as_deref(), action.guards.if_runtime.as_deref()),
            other => panic!("{other:?}"),
        })
        .collect();
    let ids = ["00000000000000000000000000000003", "00000000000000000000000000000006"];
    assert_eq!(sent, ids.map(|id| (Some("stop for today"), Some(id))));
    assert!(seat.model.chosen.is_empty());
}

#[test]
fn an_agent_with_an_open_dialog_keeps_the_prompt_from_all() {
    let mut seat = ModelSeat::new(120, 40);
    for pane in [1, 6] {
        seat.select(pane);
        seat.press(' ');
    }
    assert_eq!(seat.press('s'), []);
    assert!(seat.notice().starts_with("a dialog is open"), "{}", seat.notice());
}

#[test]
fn several_agents_are_stopped_after_they_were_listed() {
    let mut seat = ModelSeat::new(120, 40);
    for pane in [3, 6] {
        seat.select(pane);
        seat.press(' ');
    }
    seat.press('x');
    let screen = seat.screen();
    assert!(screen.contains("stop 2 agents?") && screen.contains("gemini api:1.1"), "{screen}");
    assert_eq!(seat.press('t').len(), 2);
}

#[test]
fn identical_dialogs_are_answered_together_after_a_question() {
    let mut seat = ModelSeat::new(120, 40);
    ask(&mut seat, &[1, 3, 6], "cargo test");
    ask(&mut seat, &[7], "rm -r /");
    seat.select(1);
    assert!(seat.screen().contains("2 more ask the same"), "{}", seat.screen());
    seat.press('+');
    assert_eq!(seat.model.chosen.len(), 3);
    assert_eq!(seat.press('1'), [], "the members are listed first");
    let screen = seat.screen();
    for text in ["answer 3 agents: 1 Yes?", "cargo test", "api:0.0", "web:3.0"] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    // One of the dialogs changes while the person reads the list.
    ask(&mut seat, &[6], "cargo test --all");
    let effects = seat.press('y');
    let answered: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            TuiEffect::Respond { action, .. } => (action.answer.clone(), action.guards.if_runtime.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let ids = ["00000000000000000000000000000001", "00000000000000000000000000000003"];
    assert_eq!(answered, ids.map(|id| (DialogAnswer::Option(1), Some(id.to_owned()))));
    assert!(seat.notice().starts_with("1 dialogs changed and are not answered"), "{}", seat.notice());
}

#[test]
fn different_dialogs_are_not_answered_together() {
    let mut seat = ModelSeat::new(120, 40);
    ask(&mut seat, &[1], "cargo test");
    ask(&mut seat, &[7], "rm -r /");
    for pane in [1, 7] {
        seat.select(pane);
        seat.press(' ');
    }
    seat.select(1);
    assert_eq!(seat.press('a'), []);
    assert!(seat.notice().contains("asks something else"), "{}", seat.notice());
    assert!(seat.model.overlay.is_none());
}

#[test]
fn a_list_of_agents_that_does_not_fit_is_refused() {
    let mut seat = ModelSeat::new(120, 11);
    for pane in [3, 6, 4, 5] {
        seat.select(pane);
        seat.press(' ');
    }
    seat.press('x');
    assert!(seat.notice().starts_with("this screen can list only"), "{}", seat.notice());
}
