//! The filter, the history of a pane, the palette, the mouse and the clipboard.

use std::time::Duration;

use agtmux_api::wire::{DialogAnswer, OutputReport};
use agtmux_tui::keymap::{CustomCommand, KeyMap};
use agtmux_tui::model::AgentKey;
use agtmux_tui::update::{TuiEffect, TuiMessage, TuiOutcome};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};

use crate::fixture::ModelSeat;

fn key(pane: u32) -> AgentKey {
    AgentKey::Runtime(format!("{pane:032x}"))
}

/// Gives the interface the screen or the history that it has asked for.
fn show(seat: &mut ModelSeat, pane: u32, has_history: bool, lines: impl IntoIterator<Item = String>) {
    let report = OutputReport { lines: lines.into_iter().collect(), title: None, full_screen: false, tty: None };
    seat.done(TuiOutcome::Preview { key: key(pane), has_history, result: Ok(report) });
    seat.draw();
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|n| format!("line {n}."))
}

#[test]
fn the_filter_searches_screens_and_says_where_it_found_the_words() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(3);
    show(&mut seat, 3, false, ["\u{1b}[32mMigrating\u{1b}[0m the database".to_owned()]);
    seat.press('/');
    seat.write("migrating");
    assert_eq!(seat.rows(), [3]);
    assert!(seat.screen().contains("screen: Migrating the dat"), "{}", seat.screen());
}

#[test]
fn the_letters_of_a_name_may_be_apart() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('/');
    seat.write("opcd");
    assert_eq!(seat.rows(), [6], "opencode");
}

#[test]
fn the_history_stays_where_the_reader_is_while_output_goes_on() {
    let mut seat = ModelSeat::new(120, 40);
    seat.select(3);
    show(&mut seat, 3, false, numbered(10));
    let effects = seat.key(KeyCode::PageUp);
    let [TuiEffect::ReadPreview { action, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert!(action.lines.is_some_and(|lines| lines > 1000));
    show(&mut seat, 3, true, numbered(500));
    let before = seat.screen();
    assert!(before.contains("lines back") && !before.contains("line 500."), "{before}");
    seat.tell(TuiMessage::PaneWrote);
    assert_eq!(seat.wait(Duration::from_secs(1)), [], "no read while the person reads");
    assert!(seat.screen().contains("the pane has written since"), "{}", seat.screen());
    seat.key(KeyCode::Esc);
    let effects = seat.wait(Duration::from_secs(1));
    assert!(matches!(effects[..], [TuiEffect::ReadPreview { .. }]), "{effects:?}");
    show(&mut seat, 3, false, numbered(12));
    assert!(seat.screen().contains("line 12."), "{}", seat.screen());
}

#[test]
fn the_palette_and_the_list_of_keys_run_commands() {
    for opening in [':', '?'] {
        let mut seat = ModelSeat::new(120, 40);
        seat.press(opening);
        seat.write("earlier states");
        let effects = seat.key(KeyCode::Enter);
        assert!(matches!(effects[..], [TuiEffect::History { .. }]), "{effects:?}");
    }
    let mut seat = ModelSeat::new(120, 40);
    seat.press('?');
    seat.write("q");
    assert!(seat.model.overlay.is_none(), "without a filter, q closes the list");
    seat.press(':');
    seat.write("q");
    assert!(seat.model.overlay.is_some(), "in the palette, q is a letter");
    seat.key(KeyCode::Esc);
    seat.key(KeyCode::Esc);
    assert!(seat.model.overlay.is_none());
}

#[test]
fn the_mouse_does_what_keys_do() {
    let mut seat = ModelSeat::new(120, 40);
    seat.click(5, 4);
    let selected = seat.selected();
    seat.wait(Duration::from_secs(1));
    seat.click(5, 4);
    seat.now += Duration::from_millis(100);
    let effects = seat.click(5, 4);
    let [TuiEffect::Attach(agent)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(agent.key, key(selected));
    seat.mouse(MouseEventKind::Down(MouseButton::Right), 5, 2);
    assert_eq!(seat.model.chosen.len(), 1);
    seat.key(KeyCode::Esc);

    seat.select(1);
    let (row, _) = *seat.model.drawn.options.first().expect("an option is on the screen");
    let effects = seat.click(row.x + 1, row.y);
    let [TuiEffect::Respond { action, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(action.answer, DialogAnswer::Option(1));

    let hints = seat.model.drawn.hints.clone();
    let (row, _) = hints.iter().find(|(_, command)| *command == agtmux_tui::keymap::TuiCommand::Quit).expect("a hint");
    assert_eq!(seat.click(row.x, row.y), [TuiEffect::Quit]);
}

#[test]
fn what_is_offered_can_be_copied() {
    let mut seat = ModelSeat::new(120, 40);
    seat.press('y');
    assert!(seat.screen().contains("the command"), "{}", seat.screen());
    let effects = seat.press('c');
    let [TuiEffect::Copy(text)] = &effects[..] else { panic!("{effects:?}") };
    assert!(text.contains("cargo test --package api login"), "{text}");
    seat.select(6);
    seat.press('y');
    assert!(!seat.screen().contains("the command"), "no dialog is open: {}", seat.screen());
}

#[test]
fn the_value_of_a_field_names_no_other_field() {
    let mut seat = ModelSeat::new(120, 40);
    let command = |arguments: &[&str], is_shell| CustomCommand {
        key: "ctrl-g".parse().expect("a key"),
        name: "mine".into(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        is_shell,
    };
    seat.change(6, |item| item.cwd = Some("/tmp/{session} $(touch x)".into()));
    let mut run = |arguments: &[&str], is_shell| {
        seat.model.keys = KeyMap::new(&Default::default(), vec![command(arguments, is_shell)]).expect("valid");
        seat.select(6);
        let pressed = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL);
        match &seat.tell(TuiMessage::Key(pressed))[..] {
            [TuiEffect::RunProgram(call)] => call.clone(),
            other => panic!("{other:?}"),
        }
    };
    let call = run(&["ls", "{cwd}/{nothing}", "{session}{"], false);
    assert_eq!(call.arguments, ["ls", "/tmp/{session} $(touch x)/{nothing}", "web{"]);
    let call = run(&["/bin/sh", "-c", "ls {cwd}"], true);
    assert_eq!(call.arguments[2], "ls {cwd}", "a script gets the fields as variables only");
    let variable = ("AGTMUX_SELECTED_CWD".to_owned(), "/tmp/{session} $(touch x)".to_owned());
    assert!(call.environment.contains(&variable), "{:?}", call.environment);
}
