//! A list to pick from, with what was typed to filter it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{overlay, theme};
use crate::model::{DrawnScreen, EntryLook, PickerEntry, PickerKind, TuiModel, TuiPicker};
use crate::text;

const MAX_HEAD: usize = 24;

/// A row of the list.
enum PickerRow<'a> {
    Section(&'a str),
    Entry { entry: &'a PickerEntry, n: usize, is_selected: bool },
    Note(&'a str),
}

pub(super) fn draw(frame: &mut Frame, body: Rect, picker: &TuiPicker, model: &TuiModel) -> DrawnScreen {
    let shown = picker.shown();
    let title = match picker.kind {
        PickerKind::Keys => "keys",
        PickerKind::Palette => "commands",
        PickerKind::Tasks => "tasks",
        PickerKind::Targets => "targets",
    };
    overlay::heading(frame, body, title, &format!("{} of {}", shown.len(), picker.entries.len()));
    let area = Rect {
        x: body.x + 1,
        y: body.y + 2,
        width: body.width.saturating_sub(2),
        height: body.height.saturating_sub(2),
    };
    let mut drawn = DrawnScreen::default();
    if shown.is_empty() {
        let says = if picker.entries.is_empty() { picker.empty.as_str() } else { "nothing matches" };
        frame.render_widget(Line::styled(text::fit(says, usize::from(area.width)), theme::DIM), area);
        return drawn;
    }
    let unicode = model.look.unicode;
    let head = shown.iter().map(|(entry, _)| entry.head.width()).max().unwrap_or(0).min(MAX_HEAD);
    let rows = rows(&shown, usize::from(area.height));
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        let place = Rect { y, height: 1, ..area };
        match row {
            PickerRow::Section(title) => frame.render_widget(Line::styled(title.to_owned(), theme::BOLD), place),
            PickerRow::Note(note) => {
                let note = text::fit(note, usize::from(area.width).saturating_sub(4));
                frame.render_widget(Line::styled(format!("    {note}"), theme::DIM), place);
            }
            PickerRow::Entry { entry, n, is_selected } => {
                frame.render_widget(entry_line(entry, head, usize::from(area.width), unicode, is_selected), place);
                if is_selected {
                    frame.buffer_mut().set_style(place, Style::new().add_modifier(Modifier::REVERSED));
                }
                drawn.picker.push((place, n));
            }
        }
    }
    drawn
}

/// The rows that fit, with the selected one among them.
fn rows<'a>(shown: &[(&'a PickerEntry, bool)], height: usize) -> Vec<PickerRow<'a>> {
    let mut rows = Vec::new();
    let (mut section, mut selected) = ("", 0);
    for (n, (entry, is_selected)) in shown.iter().enumerate() {
        if entry.section != section {
            section = entry.section;
            rows.push(PickerRow::Section(section));
        }
        if *is_selected {
            selected = rows.len();
        }
        rows.push(PickerRow::Entry { entry, n, is_selected: *is_selected });
        if let Some(note) = entry.note.as_deref().filter(|_| *is_selected) {
            rows.push(PickerRow::Note(note));
        }
    }
    // The row after the selected one is visible, too: it may be its note.
    let top = (selected + 2).saturating_sub(height).min(rows.len().saturating_sub(height));
    rows.into_iter().skip(top).collect()
}

fn entry_line(entry: &PickerEntry, head: usize, width: usize, unicode: bool, is_selected: bool) -> Line<'static> {
    let (shape, style) = match (entry.look, unicode) {
        (EntryLook::Plain, _) => ("", Style::new()),
        (EntryLook::Key, _) => ("", theme::KEY),
        (EntryLook::Good, true) => ("● ", theme::GOOD),
        (EntryLook::Good, false) => ("* ", theme::GOOD),
        (EntryLook::Done, true) => ("○ ", theme::DIM),
        (EntryLook::Done, false) => ("o ", theme::DIM),
        (EntryLook::Busy, true) => ("◐ ", theme::ACCENT),
        (EntryLook::Busy, false) => ("~ ", theme::ACCENT),
        (EntryLook::Bad, true) => ("✗ ", theme::ERROR),
        (EntryLook::Bad, false) => ("x ", theme::ERROR),
    };
    let style = if is_selected { Style::new().add_modifier(Modifier::BOLD) } else { style };
    let room = width.saturating_sub(head + 4 + shape.width());
    Line::from(vec![
        Span::styled(format!("  {shape}"), style),
        Span::styled(text::column(&entry.head, head), style),
        Span::raw(format!("  {}", text::fit(&entry.text, room))),
    ])
}
