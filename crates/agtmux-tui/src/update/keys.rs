use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use jiff::Timestamp;

use super::{TuiEffect, act, answer, fleet, overlay};
use crate::editor::TextEditor;
use crate::keymap::{TuiCommand, command_of, help_lines};
use crate::model::{AgentRow, FleetConnection, ReaderSubject, TextReader, TuiModel, TuiNotice, TuiOverlay};

/// Applies a key press: to the overlay if one is open, else by the table of keys.
pub(super) fn press(model: &mut TuiModel, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let command = command_of(key);
    model.notice = None;
    if model.overlay.is_some() {
        let quits = command == Some(TuiCommand::Quit) && key.code != KeyCode::Char('q');
        return if quits { vec![TuiEffect::Quit] } else { overlay::press(model, key) };
    }
    if matches!(model.connection, FleetConnection::Failed(_)) && key.code == KeyCode::Enter {
        model.connection = FleetConnection::Connecting;
        return vec![TuiEffect::Connect];
    }
    match command {
        Some(TuiCommand::Choose) => answer::choose(model, digit(key), now),
        Some(command) => run(model, command, now),
        None => Vec::new(),
    }
}

fn digit(key: KeyEvent) -> u32 {
    match key.code {
        KeyCode::Char(c) => c.to_digit(10).unwrap_or(0),
        _ => 0,
    }
}

fn run(model: &mut TuiModel, command: TuiCommand, now: Timestamp) -> Vec<TuiEffect> {
    match command {
        TuiCommand::Approve => return answer::approve(model, now),
        TuiCommand::Deny => return answer::deny(model, now),
        TuiCommand::FreeText => answer::compose(model, now),
        TuiCommand::Attach if !model.marked.is_empty() => return answer::choose_marked(model, now),
        TuiCommand::Attach => return act::attach(model),
        TuiCommand::Send => act::compose(model),
        TuiCommand::Output => return act::read_output(model),
        TuiCommand::Kill => act::confirm_kill(model),
        TuiCommand::Resume => return act::resume(model),
        TuiCommand::Explain => return act::explain(model),
        TuiCommand::History => return act::history(model),
        TuiCommand::Quit => return vec![TuiEffect::Quit],
        TuiCommand::Help => {
            let reader = TextReader::new("keys".to_owned(), ReaderSubject::Keys, None);
            model.overlay = Some(TuiOverlay::Reader(TextReader { lines: Some(help_lines()), ..reader }));
        }
        TuiCommand::Filter => {
            model.overlay = Some(TuiOverlay::Filter(TextEditor::with_text(model.filter.text.clone())));
        }
        TuiCommand::WaitingOnly => {
            model.filter.waiting_only = !model.filter.waiting_only;
            fleet::arrange(model);
        }
        TuiCommand::Grouping => {
            model.grouping = model.grouping.next();
            fleet::arrange(model);
        }
        TuiCommand::Details => model.shows_details = !model.shows_details,
        TuiCommand::Back => go_back(model),
        TuiCommand::ScrollUp => scroll(model, -1),
        TuiCommand::ScrollDown => scroll(model, 1),
        TuiCommand::Choose => {}
        command => select(model, command),
    }
    Vec::new()
}

fn select(model: &mut TuiModel, command: TuiCommand) {
    let list = &mut model.list;
    let all = |_: &AgentRow| true;
    match command {
        TuiCommand::SelectNext | TuiCommand::SelectPrevious => {
            list.step(command == TuiCommand::SelectNext, false, all);
        }
        TuiCommand::NextWaiting | TuiCommand::PreviousWaiting => {
            if !list.step(command == TuiCommand::NextWaiting, true, AgentRow::is_waiting) {
                model.notice = Some(TuiNotice::info("no agent waits"));
            }
        }
        command => list.select_end(command == TuiCommand::SelectLast),
    }
}

/// Scrolls the details by half of their height. The preview is scrolled from its end, a dialog from its start.
pub(super) fn scroll(model: &mut TuiModel, direction: isize) {
    let step = isize::try_from(model.drawn.detail.height / 2).unwrap_or(1).max(1);
    scroll_details(model, direction * step);
}

pub(super) fn scroll_details(model: &mut TuiModel, lines: isize) {
    let has_dialog = model.list.selected().is_some_and(|row| row.item.dialog.is_some());
    let lines = if has_dialog { lines } else { -lines };
    let scroll = model.detail_scroll.saturating_add_signed(lines);
    model.detail_scroll = scroll.min(model.drawn.max_detail_scroll);
}

fn go_back(model: &mut TuiModel) {
    if model.shows_details {
        model.shows_details = false;
    } else if !model.marked.is_empty() {
        model.marked.clear();
    } else if !model.filter.text.is_empty() {
        model.filter.text.clear();
        fleet::arrange(model);
    } else {
        model.detail_scroll = 0;
    }
}
