//! The selected agent: what it is, its dialog, and its screen.

use agtmux_core::dialog::Dialog;
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::{self, StateLook};
use super::{dialog, list, when};
use crate::keymap::TuiCommand;
use crate::model::{AgentRow, DrawnDialog, DrawnScreen, TuiModel};
use crate::{sgr, text};

/// Below this height, the details have one line about the agent.
const MIN_FOR_HEADING: u16 = 12;
/// A preview with fewer lines says nothing.
const MIN_PREVIEW: u16 = 4;

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &TuiModel, now: Timestamp, drawn: &mut DrawnScreen) {
    drawn.detail = area;
    let Some(row) = model.list.selected() else { return };
    drawn.ages.extend(when::ticks(row, now));
    let heading = heading(row, model, now, area);
    let mut rest = below(frame, area, &heading);
    let dialog = row.dialog();
    if model.typing.is_some() {
        // The screen of the pane shows the dialog.
        drawn.dialog = dialog.map(|dialog| drawn_dialog(row, dialog, now, true));
    } else if let Some(dialog) = dialog {
        rest = draw_dialog(frame, rest, model, row, dialog, now, drawn);
        let key = model.key(TuiCommand::ScrollDown);
        mark_more(frame, area, rest, &key, drawn.max_detail_scroll - model.detail_scroll.min(drawn.max_detail_scroll));
    }
    preview(frame, rest, row, model, drawn);
}

fn draw_dialog(
    frame: &mut Frame,
    area: Rect,
    model: &TuiModel,
    row: &AgentRow,
    dialog: &Dialog,
    now: Timestamp,
    drawn: &mut DrawnScreen,
) -> Rect {
    let lines = dialog::lines(model, row, dialog, usize::from(area.width));
    let height = usize::from(area.height).min(lines.len());
    drawn.max_detail_scroll = lines.len() - height;
    let scroll = model.detail_scroll.min(drawn.max_detail_scroll);
    let (shown, options): (Vec<Line>, Vec<Option<u32>>) = lines.into_iter().skip(scroll).take(height).unzip();
    let places = (area.y..).zip(options).filter_map(|(y, option)| Some((Rect { y, height: 1, ..area }, option?)));
    drawn.options.extend(places);
    drawn.dialog = Some(drawn_dialog(row, dialog, now, scroll == drawn.max_detail_scroll));
    below(frame, area, &shown)
}

fn drawn_dialog(row: &AgentRow, dialog: &Dialog, now: Timestamp, is_read: bool) -> DrawnDialog {
    DrawnDialog { key: row.key.clone(), fingerprint: dialog.fingerprint.clone(), since: now, is_read }
}

/// Draws lines at the top of an area and returns the area below them.
fn below(frame: &mut Frame, area: Rect, lines: &[Line]) -> Rect {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
    let used = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.height);
    Rect { y: area.y + used, height: area.height - used, ..area }
}

/// Says that the dialog goes on below the screen.
fn mark_more(frame: &mut Frame, area: Rect, rest: Rect, key: &str, lines: usize) {
    if lines > 0 {
        let label = format!(" {key}: {lines} more ");
        let x = area.right().saturating_sub(u16::try_from(label.len()).unwrap_or(area.width));
        frame.buffer_mut().set_string(x.max(area.x), rest.y.saturating_sub(1), label, theme::ACCENT.reversed());
    }
}

fn heading(row: &AgentRow, model: &TuiModel, now: Timestamp, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let state = StateLook::of(row);
    let mut first = Line::from(vec![
        Span::styled(format!("{} ", state.shape(model.look.unicode)), state.style()),
        Span::styled(state.words(), state.style()),
    ]);
    if let Some(when) = when::words(row, &model.look.zone, now) {
        first.push_span(Span::styled(format!(" {when}"), theme::DIM));
    }
    if let Some(why) = doubt(row) {
        first.push_span(Span::styled(format!("  {why}"), theme::ACCENT));
    }
    if row.is_snoozed {
        first.push_span(Span::styled("  snoozed", theme::DIM));
    }
    let name = row.item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let who = format!("{}{name}  {}", row.agent_type(), row.place());
    if area.height < MIN_FOR_HEADING {
        let room = width.saturating_sub(first.width() + 2);
        first.push_span(Span::raw(format!("  {}", text::fit(&who, room))));
        return vec![first];
    }
    let directory = list::below_home(row.item.cwd.as_deref().unwrap_or_default(), model.look.home.as_deref());
    let room = width.saturating_sub(who.len() + 2);
    let second = Line::from(vec![
        Span::styled(text::fit(&who, width), theme::BOLD),
        Span::styled(format!("  {}", text::fit(&directory, room)), theme::DIM),
    ]);
    let title = row.item.title.as_deref().filter(|title| !title.trim().is_empty());
    let third = title.map(|title| Line::styled(text::fit(title, width), theme::DIM));
    [Some(first), Some(second), third, Some(Line::default())].into_iter().flatten().collect()
}

/// Why a reader should doubt the state.
fn doubt(row: &AgentRow) -> Option<String> {
    if row.is_unreachable() {
        return Some("its host does not answer".to_owned());
    }
    if let Some(reason) = row.item.reason_code.filter(|_| !row.has_ended) {
        return Some(format!("({reason})"));
    }
    row.is_doubtful().then(|| "low confidence".to_owned())
}

/// The end of the agent's screen, or the part of its history that the person reads.
fn preview(frame: &mut Frame, area: Rect, row: &AgentRow, model: &TuiModel, drawn: &mut DrawnScreen) {
    if area.height < MIN_PREVIEW {
        return;
    }
    drawn.preview_of = Some(row.key.clone());
    let width = usize::from(area.width);
    let scrolls = row.dialog().is_none() || model.typing.is_some();
    let content = model.preview.content.as_ref().filter(|_| model.preview.key.as_ref() == Some(&row.key));
    let inner = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let lines = match content {
        None => &[][..],
        Some(Err(why)) => {
            frame.render_widget(Line::styled(text::fit(why, width), theme::DIM), inner);
            &[][..]
        }
        Some(Ok(lines)) => lines.as_slice(),
    };
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    let hidden = end.saturating_sub(usize::from(inner.height));
    if scrolls {
        drawn.max_detail_scroll = hidden;
    }
    let back = if scrolls { model.detail_scroll.min(hidden) } else { 0 };
    rule(frame, Rect { height: 1, ..area }, model, back);
    let first = hidden - back;
    for (y, line) in (inner.y..inner.bottom()).zip(&lines[first..end]) {
        frame.render_widget(sgr::styled(line, width), Rect { y, height: 1, ..inner });
    }
}

/// The line above the screen: what is shown, and where keys go.
fn rule(frame: &mut Frame, area: Rect, model: &TuiModel, back: usize) {
    let unicode = model.look.unicode;
    let (label, style) = match (&model.typing, back) {
        (Some(_), _) => (" your keys go here; Esc Esc ends it ".to_owned(), theme::ACCENT.reversed()),
        (None, 0) => (" screen ".to_owned(), theme::DIM),
        (None, back) => {
            let newer = if model.preview.has_newer { "; the pane has written since" } else { "" };
            (format!(" {back} lines back{newer}; Esc goes to the end "), theme::ACCENT)
        }
    };
    let dash = theme::horizontal(unicode);
    frame.buffer_mut().set_string(area.x, area.y, dash.repeat(usize::from(area.width)), theme::DIM);
    let label = text::fit(&label, usize::from(area.width).saturating_sub(1));
    frame.buffer_mut().set_string(area.x + 1, area.y, label, Style::new().patch(style));
}
