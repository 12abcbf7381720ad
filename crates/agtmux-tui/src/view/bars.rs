//! The first and the last row: counts, notices and hints.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::{self, StateLook};
use crate::keymap::{TuiCommand, binding};
use crate::model::{DrawnScreen, FleetConnection, TextReader, TuiModel, TuiNotice, TuiOverlay};
use crate::text;

const COUNTED: [(StateLook, &str); 6] = [
    (StateLook::Approval, "waiting"),
    (StateLook::Error, "error"),
    (StateLook::Unseen, "done"),
    (StateLook::Running, "running"),
    (StateLook::Idle, "idle"),
    (StateLook::Unknown, "unknown"),
];

/// Counts on the left, what the list shows on the right.
pub(super) fn header(frame: &mut Frame, area: Rect, model: &TuiModel) {
    let mut right = match &model.connection {
        FleetConnection::Interrupted(_) => vec![Span::styled("daemon disconnected; out of date ", theme::ERROR)],
        FleetConnection::Failed(_) => vec![Span::styled("no connection; out of date ", theme::ERROR)],
        FleetConnection::Connecting => vec![Span::styled("connecting… ", theme::DIM)],
        FleetConnection::Live => Vec::new(),
    };
    if model.filter.waiting_only {
        right.push(Span::styled("waiting only ", theme::ACCENT));
    }
    if !model.filter.text.is_empty() {
        right.push(Span::styled(format!("/{} ", text::fit(&model.filter.text, 20)), theme::ACCENT));
    }
    if right.is_empty() && area.width >= 60 {
        right.push(Span::styled(format!("{} ", model.grouping.name()), theme::DIM));
    }
    let right = Line::from(right);
    let room = usize::from(area.width).saturating_sub(right.width() + 1);
    let mut left = vec![Span::styled(" agtmux", theme::BOLD)];
    let mut used = 7;
    for (look, word) in COUNTED {
        let count = model.list.all().iter().filter(|row| counted_as(StateLook::of(row)) == look).count();
        let label = format!("{count} {word}");
        let width = label.len() + 5;
        if count == 0 || used + width > room {
            continue;
        }
        left.push(Span::styled(format!("   {} ", look.shape(model.look.unicode)), look.style()));
        left.push(Span::raw(label));
        used += width;
    }
    frame.render_widget(Line::from(left), area);
    frame.render_widget(right.alignment(Alignment::Right), area);
}

fn counted_as(look: StateLook) -> StateLook {
    if look == StateLook::Input { StateLook::Approval } else { look }
}

/// The notice, or what is being typed, or hints.
pub(super) fn footer(frame: &mut Frame, area: Rect, model: &TuiModel, drawn: &DrawnScreen) {
    let width = usize::from(area.width).saturating_sub(1);
    let line = match (&model.notice, &model.overlay) {
        (_, Some(TuiOverlay::Filter(editor))) => {
            let (before, after) = editor.around_cursor();
            typed("/", before, after, &format!("   {} match", model.list.rows().count()), width)
        }
        (_, Some(TuiOverlay::Reader(TextReader { typing: Some(editor), .. }))) => {
            let (before, after) = editor.around_cursor();
            typed("search: ", before, after, "", width)
        }
        (Some(notice), _) => notice_line(notice, width),
        (None, Some(TuiOverlay::Reader(_))) => hints(&[("q", "back"), ("/", "search"), ("PgUp PgDn", "scroll")], width),
        (None, Some(_)) => Line::default(),
        (None, None) => hints(&context_hints(model, drawn), width),
    };
    let [_, row] = ratatui::layout::Layout::horizontal([
        ratatui::layout::Constraint::Length(1),
        ratatui::layout::Constraint::Min(1),
    ])
    .areas(area);
    frame.render_widget(line, row);
}

fn notice_line(notice: &TuiNotice, width: usize) -> Line<'static> {
    let style = if notice.is_error { theme::ERROR } else { Style::new() };
    let message = text::fit(&notice.text, width);
    let mut line = Line::from(Span::styled(message, style));
    if let Some(hint) = &notice.hint {
        let room = width.saturating_sub(line.width() + 3);
        line.push_span(Span::styled(text::fit(&format!("   {hint}"), room + 3), theme::DIM));
    }
    line
}

/// A text that is being typed, with its cursor.
fn typed(label: &'static str, before: &str, after: &str, tail: &str, width: usize) -> Line<'static> {
    let room = width.saturating_sub(label.len() + tail.len() + 1);
    let before = text::safe(before);
    let skipped = before.chars().count().saturating_sub(room);
    let cursor: String = after.chars().next().map_or_else(|| " ".to_owned(), |c| text::safe(&c.to_string()));
    let rest: String = after.chars().skip(1).collect();
    Line::from(vec![
        Span::styled(label, theme::KEY),
        Span::raw(before.chars().skip(skipped).collect::<String>()),
        Span::styled(cursor, Style::new().reversed()),
        Span::raw(text::fit(&rest, room)),
        Span::styled(tail.to_owned(), theme::DIM),
    ])
}

fn context_hints(model: &TuiModel, drawn: &DrawnScreen) -> Vec<(&'static str, &'static str)> {
    let selected = model.list.selected();
    let has_dialog = selected.is_some_and(|row| row.item.dialog.is_some() && !row.has_ended);
    let mut commands = Vec::new();
    match selected {
        None => {}
        Some(row) if row.has_ended => commands.extend([TuiCommand::Resume, TuiCommand::Output]),
        Some(_) if has_dialog && drawn.dialog.is_none() => commands.extend([TuiCommand::Details, TuiCommand::Attach]),
        Some(_) if has_dialog => commands.extend([TuiCommand::Choose, TuiCommand::Deny, TuiCommand::Attach]),
        Some(_) => commands.extend([TuiCommand::Attach, TuiCommand::Send, TuiCommand::Output, TuiCommand::Kill]),
    }
    if model.waiting() > usize::from(has_dialog) {
        commands.push(TuiCommand::NextWaiting);
    }
    commands.extend([TuiCommand::Explain, TuiCommand::Filter, TuiCommand::Grouping]);
    if selected.is_none() {
        commands.clear();
    }
    let of = |command| binding(command).map(|binding| (binding.key(), binding.hint));
    // The last two hints are always shown.
    commands.into_iter().chain([TuiCommand::Help, TuiCommand::Quit]).filter_map(of).collect()
}

/// As many hints as fit. The last two are shown first.
fn hints(all: &[(&'static str, &'static str)], width: usize) -> Line<'static> {
    let size = |(key, word): &(&str, &str)| key.chars().count() + word.len() + 3;
    let kept = all.len().saturating_sub(2);
    let mut room = width.saturating_sub(all[kept..].iter().map(size).sum());
    let mut spans = Vec::new();
    let mut push = |(key, word): &(&'static str, &'static str)| {
        spans.push(Span::styled(*key, theme::KEY));
        spans.push(Span::styled(format!(" {word}  "), theme::DIM));
    };
    for hint in &all[..kept] {
        if size(hint) > room {
            break;
        }
        room -= size(hint);
        push(hint);
    }
    all[kept..].iter().for_each(&mut push);
    Line::from(spans)
}
