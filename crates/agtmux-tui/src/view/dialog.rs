//! The lines of a dialog: the question, what is to be approved, the options, and the keys.

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::DialogKind;
use ratatui::text::{Line, Span};

use super::theme;
use crate::keymap::TuiCommand;
use crate::model::{AgentRow, TuiModel};
use crate::text;
use crate::update::asks_the_same;

/// The lines, each with the option that a click on it chooses.
pub(super) fn lines(
    model: &TuiModel,
    row: &AgentRow,
    dialog: &Dialog,
    width: usize,
) -> Vec<(Line<'static>, Option<u32>)> {
    let question = text::wrap(&dialog.question, width).into_iter().map(|row| Line::styled(row, theme::BOLD));
    let head = question.chain(subject(dialog, model.look.unicode, width)).chain([Line::default()]);
    let mut lines: Vec<(Line, Option<u32>)> = head.map(|line| (line, None)).collect();
    for option in &dialog.options {
        let rows = option_lines(model, dialog, option.n, &option.label, width);
        lines.extend(rows.into_iter().map(|line| (line, Some(option.n))));
    }
    if !dialog.options.is_empty() {
        lines.push((Line::default(), None));
    }
    if model.answering.as_ref() == Some(&row.key) {
        lines.push((Line::styled("answering…", theme::DIM), None));
    } else {
        lines.extend(keys(model, row, dialog).into_iter().map(|line| (line, None)));
    }
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

/// The keys that answer, and below them the key for agents that ask the same.
fn keys(model: &TuiModel, row: &AgentRow, dialog: &Dialog) -> Vec<Line<'static>> {
    let mut words = Vec::new();
    if !model.marked.is_empty() {
        words.push((TuiCommand::Attach, "answer".to_owned()));
    }
    if dialog.kind == DialogKind::Approval {
        words.push((TuiCommand::Approve, "approve".to_owned()));
    }
    words.push((TuiCommand::Deny, "deny".to_owned()));
    words.push((TuiCommand::FreeText, "free text".to_owned()));
    let same = model.list.rows().filter(|other| other.key != row.key && asks_the_same(row, other)).count();
    let more = (same > 0).then(|| (TuiCommand::SelectSame, format!("{same} more ask the same")));
    let line = |words: Vec<(TuiCommand, String)>| {
        let spans = words.into_iter().flat_map(|(command, word)| {
            [Span::styled(model.key(command), theme::KEY), Span::styled(format!(" {word}   "), theme::DIM)]
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    [words].into_iter().chain(more.map(|more| vec![more])).map(line).collect()
}
