use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::layout::{Position, Rect};

use super::{TuiEffect, act, answer, keys, marks, overlay, picker, typing};
use crate::model::{TuiModel, TuiNotice, TuiOverlay};

/// How many lines one step of the wheel scrolls.
const WHEEL_LINES: isize = 3;
/// Two clicks on a row within this time go to the agent's pane.
const DOUBLE_CLICK: Duration = Duration::from_millis(500);

pub(super) fn mouse(model: &mut TuiModel, event: MouseEvent, now: Timestamp) -> Vec<TuiEffect> {
    let at = Position::new(event.column, event.row);
    let before = model.last_input.replace(now);
    match event.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            let is_double = before.is_some_and(|before| now <= before + DOUBLE_CLICK);
            model.notice = None;
            click(model, at, is_double, now)
        }
        MouseEventKind::Down(MouseButton::Right) if model.overlay.is_none() && model.typing.is_none() => {
            if select_row(model, at) {
                marks::toggle_chosen(model);
            }
            Vec::new()
        }
        MouseEventKind::ScrollUp => wheel(model, at, -1),
        MouseEventKind::ScrollDown => wheel(model, at, 1),
        _ => Vec::new(),
    }
}

fn wheel(model: &mut TuiModel, at: Position, direction: isize) -> Vec<TuiEffect> {
    let height = model.drawn.reader_height.max(1);
    match &mut model.overlay {
        Some(TuiOverlay::Reader(reader)) => reader.scroll_by(direction * WHEEL_LINES, height),
        Some(TuiOverlay::Picker(picker)) => picker.step(direction),
        Some(_) => {}
        None if model.drawn.detail.contains(at) => return keys::scroll_details(model, direction * WHEEL_LINES),
        None if model.typing.is_none() => drop(model.list.step(direction > 0, false, |_| true)),
        None => {}
    }
    Vec::new()
}

fn click(model: &mut TuiModel, at: Position, is_double: bool, now: Timestamp) -> Vec<TuiEffect> {
    if let Some(letter) = hit(&model.drawn.menu, at) {
        return overlay::press(model, KeyEvent::from(KeyCode::Char(letter)), now);
    }
    if let (Some(n), Some(TuiOverlay::Picker(picker))) = (hit(&model.drawn.picker, at), &mut model.overlay) {
        picker.select(n);
        let Some(TuiOverlay::Picker(picker)) = model.overlay.take() else { return Vec::new() };
        return picker::choose(model, picker, now);
    }
    if let Some(command) = hit(&model.drawn.hints, at).filter(|_| model.overlay.is_none() && model.typing.is_none()) {
        return keys::run(model, command, now);
    }
    if model.overlay.is_some() {
        return Vec::new();
    }
    if model.typing.is_some() {
        if model.drawn.list.contains(at) {
            typing::leave(model, TuiNotice::info("keys are for the list again"));
            select_row(model, at);
        }
        return Vec::new();
    }
    if let Some(n) = hit(&model.drawn.options, at) {
        return answer::choose(model, n, now);
    }
    let was_selected = model.list.selected_line();
    if select_row(model, at) && is_double && model.list.selected_line() == was_selected {
        return act::attach(model);
    }
    Vec::new()
}

fn hit<T: Copy>(areas: &[(Rect, T)], at: Position) -> Option<T> {
    areas.iter().find(|(area, _)| area.contains(at)).map(|(_, value)| *value)
}

fn select_row(model: &mut TuiModel, at: Position) -> bool {
    let list = model.drawn.list;
    list.contains(at) && model.list.select_at(model.drawn.top + usize::from(at.y - list.y))
}
