//! Draws the model. Drawing changes nothing; it returns what is on the screen, and where.

mod bars;
mod detail;
mod dialog;
mod list;
mod menu;
mod overlay;
mod pages;
mod picker;
mod row;
mod scrub;
mod theme;
mod when;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::model::{DrawnScreen, TuiModel, TuiOverlay};

/// From this width on, the details are beside the list.
const SIDE_BY_SIDE: u16 = 80;
/// From this width on, the details are below the list.
const STACKED: u16 = 60;
/// A body with fewer rows is not divided.
const MIN_STACKED_HEIGHT: u16 = 12;

/// Draws one frame.
pub fn render(frame: &mut Frame, model: &TuiModel, now: Timestamp) -> DrawnScreen {
    let [header, body, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    bars::header(frame, header, model);
    let mut drawn = match &model.overlay {
        Some(TuiOverlay::Reader(reader)) => overlay::reader(frame, body, reader),
        Some(TuiOverlay::Picker(picker)) => picker::draw(frame, body, picker, model),
        _ => main(frame, body, model, now),
    };
    drawn.body_height = body.height;
    bars::footer(frame, footer, model, &mut drawn);
    match &model.overlay {
        Some(TuiOverlay::Compose(composed)) => overlay::compose(frame, body, composed, model.look.unicode),
        Some(TuiOverlay::Menu(menu)) => menu::draw(frame, body, menu, model.look.unicode, &mut drawn),
        _ => {}
    }
    scrub::scrub(frame.buffer_mut(), &model.look);
    drawn
}

fn main(frame: &mut Frame, body: Rect, model: &TuiModel, now: Timestamp) -> DrawnScreen {
    if let Some(page) = pages::page(model) {
        pages::draw(frame, body, &page);
        return DrawnScreen::default();
    }
    let (list, detail) = areas(body, model.shows_details || model.typing.is_some());
    let mut drawn = DrawnScreen::default();
    if let Some(list) = list {
        list::draw(frame, list, model, now, &mut drawn);
    }
    if let Some(detail) = detail {
        if let (Some(list), true) = (list, body.width >= STACKED) {
            rule(frame, list, detail, model.look.unicode);
        }
        detail::draw(frame, detail, model, now, &mut drawn);
    }
    drawn
}

/// The areas of the list and of the details.
fn areas(body: Rect, shows_details: bool) -> (Option<Rect>, Option<Rect>) {
    if body.width >= SIDE_BY_SIDE {
        let [list, _, detail] =
            Layout::horizontal([Constraint::Percentage(50), Constraint::Length(2), Constraint::Min(1)]).areas(body);
        return (Some(list), Some(detail));
    }
    if body.width >= STACKED && body.height >= MIN_STACKED_HEIGHT {
        let [list, _, detail] =
            Layout::vertical([Constraint::Percentage(40), Constraint::Length(1), Constraint::Min(1)]).areas(body);
        return (Some(list), Some(detail));
    }
    if shows_details { (None, Some(body)) } else { (Some(body), None) }
}

/// The line between the list and the details.
fn rule(frame: &mut Frame, list: Rect, detail: Rect, unicode: bool) {
    let is_beside = detail.x > list.x;
    let buffer = frame.buffer_mut();
    if is_beside {
        for y in list.top()..list.bottom() {
            buffer.set_string(list.right(), y, theme::vertical(unicode), theme::DIM);
        }
    } else {
        let line = theme::horizontal(unicode).repeat(usize::from(list.width));
        buffer.set_string(list.x, list.bottom(), line, theme::DIM);
    }
}
