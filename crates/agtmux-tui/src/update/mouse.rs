use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use jiff::Timestamp;
use ratatui::layout::{Position, Rect};

use super::{TuiEffect, keys};
use crate::model::{TuiModel, TuiOverlay};

/// How many lines one step of the wheel scrolls.
const WHEEL_LINES: isize = 3;

pub(super) fn mouse(model: &mut TuiModel, event: MouseEvent, now: Timestamp) -> Vec<TuiEffect> {
    let at = Position::new(event.column, event.row);
    let direction = match event.kind {
        MouseEventKind::Down(MouseButton::Left) => 0,
        MouseEventKind::ScrollUp => -1,
        MouseEventKind::ScrollDown => 1,
        _ => return Vec::new(),
    };
    model.last_input = Some(now);
    let height = model.drawn.reader_height.max(1);
    match &mut model.overlay {
        Some(TuiOverlay::Reader(reader)) => reader.scroll_by(direction * WHEEL_LINES, height),
        Some(_) => {}
        None if direction == 0 => click(model, model.drawn.list, at),
        None if model.drawn.detail.contains(at) => keys::scroll_details(model, direction * WHEEL_LINES),
        None => drop(model.list.step(direction > 0, false, |_| true)),
    }
    Vec::new()
}

fn click(model: &mut TuiModel, list: Rect, at: Position) {
    if list.contains(at) {
        model.notice = None;
        model.list.select_at(model.drawn.top + usize::from(at.y - list.y));
    }
}
