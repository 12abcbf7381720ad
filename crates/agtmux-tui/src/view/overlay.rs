//! The editor and the reader of texts.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::theme;
use crate::model::{ComposePurpose, ComposedText, DrawnScreen, TextReader};
use crate::{sgr, text};

/// The most lines of the editor that are visible.
const MAX_EDITOR: u16 = 12;

pub(super) fn compose(frame: &mut Frame, body: Rect, composed: &ComposedText, unicode: bool) {
    let to = match composed.agents.as_slice() {
        [agent] => agent.label.clone(),
        several => {
            let names: Vec<&str> = several.iter().map(|agent| agent.label.as_str()).collect();
            format!("{} agents: {}", several.len(), names.join(", "))
        }
    };
    let title = match composed.purpose {
        ComposePurpose::Send => format!(" prompt for {to} "),
        ComposePurpose::Answer { .. } => format!(" answer to {to} "),
    };
    let width = usize::from(body.width).saturating_sub(4).max(4);
    let (lines, cursor_line) = editor_lines(composed, width);
    let wanted = u16::try_from(lines.len()).unwrap_or(MAX_EDITOR).clamp(3, MAX_EDITOR) + 2;
    let height = wanted.min(body.height);
    let area = Rect { y: body.bottom() - height, height, ..body };
    let inner = boxed(frame, area, &title, "Enter sends · Alt-Enter new line · Esc closes", unicode);
    let room = usize::from(inner.height);
    let first = (cursor_line + 1).saturating_sub(room);
    for (y, line) in (inner.y..inner.bottom()).zip(lines.into_iter().skip(first)) {
        frame.render_widget(line, Rect { y, height: 1, ..inner });
    }
}

/// The text in rows of this width with its cursor, and the row of the cursor.
fn editor_lines(composed: &ComposedText, width: usize) -> (Vec<Line<'static>>, usize) {
    let (before, after) = composed.editor.around_cursor();
    let at = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default();
    let mut lines = Vec::new();
    let mut cursor_line = 0;
    for (n, line) in format!("{before}{after}").split('\n').enumerate() {
        if n != at {
            lines.extend(rows(line, width).into_iter().map(Line::raw));
            continue;
        }
        let under: String = line[column.len()..].chars().take(1).collect();
        let rest = &line[column.len() + under.len()..];
        let mut head = rows(column, width);
        let last = head.pop().unwrap_or_default();
        lines.extend(head.into_iter().map(Line::raw));
        cursor_line = lines.len();
        let under = if under.is_empty() { " ".to_owned() } else { text::safe(&under) };
        lines.push(Line::from(vec![
            Span::raw(last.clone()),
            Span::styled(under, Style::new().reversed()),
            Span::raw(text::fit(rest, width.saturating_sub(last.chars().count() + 1))),
        ]));
    }
    (lines, cursor_line)
}

/// A line in rows, broken at the width and not at blanks, so that the cursor is where it seems to be.
fn rows(line: &str, width: usize) -> Vec<String> {
    let safe: Vec<char> = text::safe(line).chars().collect();
    let rows: Vec<String> = safe.chunks(width).map(|row| row.iter().collect()).collect();
    if rows.is_empty() { vec![String::new()] } else { rows }
}

pub(super) fn boxed(frame: &mut Frame, area: Rect, title: &str, hint: &str, unicode: bool) -> Rect {
    frame.render_widget(Clear, area);
    let room = usize::from(area.width).saturating_sub(4);
    let block = Block::bordered()
        .border_set(theme::borders(unicode))
        .border_style(theme::DIM)
        .title(Span::styled(text::fit(title, room), theme::BOLD))
        .title_bottom(Span::styled(text::fit(hint, room), theme::DIM));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// A text to read, with the place in it.
pub(super) fn reader(frame: &mut Frame, body: Rect, reader: &TextReader) -> DrawnScreen {
    let width = usize::from(body.width).saturating_sub(2);
    let height = usize::from(body.height).saturating_sub(2);
    let drawn = DrawnScreen { reader_height: height, ..DrawnScreen::default() };
    let Some(lines) = &reader.lines else {
        heading(frame, body, &reader.title, "reading…");
        return drawn;
    };
    let scroll = reader.scroll.min(reader.max_scroll(height));
    let last = (scroll + height).min(lines.len());
    heading(frame, body, &reader.title, &format!("{}-{last} of {}", (scroll + 1).min(last), lines.len()));
    let wanted = reader.search.to_lowercase();
    for (y, line) in (body.y + 2..body.bottom()).zip(&lines[scroll..last]) {
        let row = Rect { x: body.x + 1, y, width: body.width.saturating_sub(2), height: 1 };
        let shown = sgr::styled(line, width);
        let found = !wanted.is_empty() && sgr::without_colours(line).to_lowercase().contains(&wanted);
        frame.render_widget(if found { shown.style(theme::ACCENT.reversed()) } else { shown }, row);
    }
    drawn
}

pub(super) fn heading(frame: &mut Frame, body: Rect, title: &str, place: &str) {
    let row = Rect { x: body.x + 1, height: 1, width: body.width.saturating_sub(2), ..body };
    let room = usize::from(row.width).saturating_sub(place.len() + 2);
    frame.render_widget(Line::styled(text::fit(title, room), theme::BOLD), row);
    frame.render_widget(Line::styled(place.to_owned(), theme::DIM).right_aligned(), row);
}
