use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use jiff::Timestamp;

use super::{TuiEffect, act, answer, copy, custom, fleet, marks, overlay, picker, preview, tasks, typing};
use crate::editor::TextEditor;
use crate::keymap::{KeyAction, TuiCommand};
use crate::model::{AgentRow, FleetConnection, PickerKind, TuiModel, TuiNotice, TuiOverlay};

/// Applies a key press: to the pane that the keyboard is in, to the overlay if one is open, else by the table of keys.
pub(super) fn press(model: &mut TuiModel, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    model.notice = None;
    if model.typing.is_some() {
        return typing::press(model, key, now);
    }
    let action = model.keys.action_of(key);
    if model.overlay.is_some() {
        let is_letter = matches!(key.code, KeyCode::Char(_)) && !has_modifier(key);
        let quits = action == Some(KeyAction::Command(TuiCommand::Quit)) && !is_letter;
        return if quits { vec![TuiEffect::Quit] } else { overlay::press(model, key, now) };
    }
    if matches!(model.connection, FleetConnection::Failed(_)) && key.code == KeyCode::Enter {
        model.connection = FleetConnection::Connecting;
        return vec![TuiEffect::Connect];
    }
    match action {
        Some(KeyAction::Command(TuiCommand::Choose)) => answer::choose(model, digit(key), now),
        Some(KeyAction::Command(command)) => run(model, command, now),
        Some(KeyAction::Custom(n)) => custom::run(model, n),
        None => Vec::new(),
    }
}

fn has_modifier(key: KeyEvent) -> bool {
    use crossterm::event::KeyModifiers;
    key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

fn digit(key: KeyEvent) -> u32 {
    match key.code {
        KeyCode::Char(c) => c.to_digit(10).unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn run(model: &mut TuiModel, command: TuiCommand, now: Timestamp) -> Vec<TuiEffect> {
    match command {
        TuiCommand::Approve => return answer::approve(model, now),
        TuiCommand::Deny => return answer::deny(model, now),
        TuiCommand::FreeText => answer::compose(model, now),
        TuiCommand::SelectSame => marks::choose_same(model),
        TuiCommand::Attach if !model.marked.is_empty() => return answer::choose_marked(model, now),
        TuiCommand::Attach => return act::attach(model),
        TuiCommand::TypeInPane => typing::begin(model),
        TuiCommand::Send => act::compose(model),
        TuiCommand::Output => return act::read_output(model),
        TuiCommand::Kill => act::confirm_kill(model),
        TuiCommand::Resume => return act::resume(model),
        TuiCommand::Explain => return act::explain(model),
        TuiCommand::History => return act::history(model),
        TuiCommand::Audit => return act::audit(model),
        TuiCommand::Seen => return act::seen(model),
        TuiCommand::Copy => copy::menu(model),
        TuiCommand::Snooze => marks::snooze(model, now),
        TuiCommand::Pin => marks::toggle_pin(model, now),
        TuiCommand::SelectSeveral => marks::toggle_chosen(model),
        TuiCommand::Tasks => return tasks::open(model),
        TuiCommand::Targets => return picker::open_targets(model),
        TuiCommand::Palette => picker::open_commands(model, PickerKind::Palette),
        TuiCommand::Help => picker::open_commands(model, PickerKind::Keys),
        TuiCommand::Quit => return vec![TuiEffect::Quit],
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
        TuiCommand::ScrollUp => return scroll(model, -1),
        TuiCommand::ScrollDown => return scroll(model, 1),
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

/// Scrolls the details by half of their height. The screen of an agent is scrolled from its end, a dialog from its
/// start.
pub(super) fn scroll(model: &mut TuiModel, direction: isize) -> Vec<TuiEffect> {
    let step = isize::try_from(model.drawn.detail.height / 2).unwrap_or(1).max(1);
    scroll_details(model, direction * step)
}

pub(super) fn scroll_details(model: &mut TuiModel, lines: isize) -> Vec<TuiEffect> {
    if preview::scrolls_dialog(model) {
        let scroll = model.detail_scroll.saturating_add_signed(lines);
        model.detail_scroll = scroll.min(model.drawn.max_detail_scroll);
        return Vec::new();
    }
    let wanted = model.detail_scroll.saturating_add_signed(-lines);
    model.detail_scroll = wanted.min(model.drawn.max_detail_scroll);
    // The screen ends here; the history of the pane goes on above it.
    if lines < 0 && wanted > model.drawn.max_detail_scroll { preview::read_history(model, wanted) } else { Vec::new() }
}

fn go_back(model: &mut TuiModel) {
    if !model.marked.is_empty() {
        model.marked.clear();
    } else if !model.chosen.is_empty() {
        model.chosen.clear();
    } else if model.detail_scroll > 0 {
        model.detail_scroll = 0;
    } else if model.shows_details && model.drawn.list.is_empty() {
        model.shows_details = false;
    } else if !model.filter.text.is_empty() {
        model.filter.text.clear();
        fleet::arrange(model);
    }
}
