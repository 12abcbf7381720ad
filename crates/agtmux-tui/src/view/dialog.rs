//! The lines of a dialog: the question, what is to be approved, the options, and the keys.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::DialogKind;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme;
use crate::model::TuiModel;
use crate::text;

pub(super) fn lines(model: &TuiModel, dialog: &Dialog, is_answered: bool, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line> =
        text::wrap(&dialog.question, width).into_iter().map(|row| Line::styled(row, theme::BOLD)).collect();
    lines.extend(subject(dialog, model.look.unicode, width));
    lines.push(Line::default());
    for option in &dialog.options {
        lines.extend(option_lines(model, dialog, option.n, &option.label, width));
    }
    if !dialog.options.is_empty() {
        lines.push(Line::default());
    }
    lines.push(if is_answered { Line::styled("answering…", theme::DIM) } else { keys(model, dialog) });
    lines
}

/// What is to be approved, marked by a bar at its left.
fn subject(dialog: &Dialog, unicode: bool, width: usize) -> Vec<Line<'static>> {
    let Some(subject) = dialog.subject.as_deref().filter(|subject| !subject.trim().is_empty()) else {
        return Vec::new();
    };
    let bar = || Span::styled(format!("{} ", theme::vertical(unicode)), theme::ACCENT);
    let row = |row: String| Line::from(vec![bar(), Span::raw(row)]);
    let mut lines = vec![Line::default()];
    lines.extend(text::wrap(subject, width.saturating_sub(2)).into_iter().map(row));
    if dialog.subject_truncated {
        lines
            .push(Line::from(vec![bar(), Span::styled("a part of this is not visible: Enter attaches", theme::ERROR)]));
    }
    lines
}

fn option_lines(model: &TuiModel, dialog: &Dialog, n: u32, label: &str, width: usize) -> Vec<Line<'static>> {
    let mark = match (dialog.multiple, model.marked.contains(&n)) {
        (false, _) => "",
        (true, true) => "[x] ",
        (true, false) => "[ ] ",
    };
    let indent = 4 + mark.len();
    let rows = text::wrap(label, width.saturating_sub(indent));
    let first = |row: String| {
        Line::from(vec![
            Span::styled(format!("{n:>2}  "), theme::KEY.add_modifier(ratatui::style::Modifier::BOLD)),
            Span::raw(mark),
            Span::raw(row),
        ])
    };
    let next = |row: String| Line::raw(format!("{}{row}", " ".repeat(indent)));
    rows.into_iter().enumerate().map(|(at, row)| if at == 0 { first(row) } else { next(row) }).collect()
}

fn keys(model: &TuiModel, dialog: &Dialog) -> Line<'static> {
    let approve = (dialog.kind == DialogKind::Approval).then_some(("a", "approve"));
    let chosen = (!model.marked.is_empty()).then_some(("Enter", "answer"));
    let mut spans = Vec::new();
    for (key, word) in chosen.into_iter().chain(approve).chain([("d", "deny"), ("f", "free text")]) {
        spans.push(Span::styled(key, theme::KEY));
        spans.push(Span::styled(format!(" {word}   "), Style::new().add_modifier(ratatui::style::Modifier::DIM)));
    }
    Line::from(spans)
}
