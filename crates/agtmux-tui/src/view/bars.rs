//! The first and the last row: counts, notices and hints.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::theme::{self, StateLook};
use crate::editor::TextEditor;
use crate::keymap::{TuiCommand, entry_of};
use crate::model::{AgentRow, DrawnScreen, FleetConnection, TextReader, TuiModel, TuiNotice, TuiOverlay};
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
    if !model.chosen.is_empty() {
        right.push(Span::styled(format!("{} selected ", model.chosen.len()), theme::KEY));
    }
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
        let is_counted = |row: &&AgentRow| !row.is_snoozed && !row.is_task() && counted_as(StateLook::of(row)) == look;
        let count = model.list.all().iter().filter(is_counted).count();
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
pub(super) fn footer(frame: &mut Frame, area: Rect, model: &TuiModel, drawn: &mut DrawnScreen) {
    let row = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    let width = usize::from(row.width);
    let line = match (&model.notice, &model.overlay) {
        (_, Some(TuiOverlay::Filter(editor))) => {
            typed("/", editor, &format!("   {} match", model.list.rows().count()), width)
        }
        (_, Some(TuiOverlay::Reader(TextReader { typing: Some(editor), .. }))) => typed("search: ", editor, "", width),
        (Some(notice), _) => notice_line(notice, width),
        (None, Some(TuiOverlay::Picker(picker))) => {
            let hint = if picker.is_filtered() { "   Enter Esc" } else { "   type to filter   Enter Esc" };
            typed(":", &picker.editor, hint, width)
        }
        (None, Some(TuiOverlay::Reader(_))) => {
            fixed(&[("q", "back"), ("/", "search"), ("PgUp PgDn", "scroll"), ("y", "copy")])
        }
        (None, Some(_)) => Line::default(),
        (None, None) => match &model.typing {
            Some(typing) if typing.escape_at.is_some() => fixed(&[("Esc", "again ends it")]),
            Some(_) => fixed(&[("Esc Esc", "ends it"), ("every other key", "goes to the pane")]),
            None => hints(&context_hints(model, drawn), model, row, drawn),
        },
    };
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
fn typed(label: &'static str, editor: &TextEditor, tail: &str, width: usize) -> Line<'static> {
    let (before, after) = editor.around_cursor();
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

/// Commands for what is on the screen, those that a person needs most first.
fn context_hints(model: &TuiModel, drawn: &DrawnScreen) -> Vec<TuiCommand> {
    let Some(row) = model.list.selected() else { return vec![TuiCommand::Help, TuiCommand::Quit] };
    let has_dialog = row.dialog().is_some();
    let mut commands = match row {
        _ if !model.chosen.is_empty() && has_dialog => vec![TuiCommand::Choose, TuiCommand::Deny, TuiCommand::Back],
        _ if !model.chosen.is_empty() => vec![TuiCommand::Send, TuiCommand::Kill, TuiCommand::Seen, TuiCommand::Back],
        row if row.has_ended => vec![TuiCommand::Resume, TuiCommand::Output],
        _ if has_dialog && drawn.dialog.is_none() => vec![TuiCommand::Details, TuiCommand::Attach],
        _ if has_dialog => vec![TuiCommand::Choose, TuiCommand::Deny, TuiCommand::Attach],
        _ => vec![TuiCommand::Attach, TuiCommand::Send, TuiCommand::TypeInPane, TuiCommand::Output, TuiCommand::Kill],
    };
    if model.waiting() > usize::from(row.is_waiting()) {
        commands.push(TuiCommand::NextWaiting);
    }
    commands.extend([TuiCommand::Explain, TuiCommand::Filter, TuiCommand::Grouping]);
    // The last two hints are always shown.
    commands.extend([TuiCommand::Help, TuiCommand::Quit]);
    commands
}

/// As many hints as fit, and what a click on them does. The last two are always shown.
fn hints(commands: &[TuiCommand], model: &TuiModel, row: Rect, drawn: &mut DrawnScreen) -> Line<'static> {
    let of = |command: &TuiCommand| {
        let key = model.key(*command);
        (!key.is_empty()).then(|| (*command, key, entry_of(*command).hint))
    };
    let all: Vec<_> = commands.iter().filter_map(of).collect();
    let size = |key: &str, word: &str| key.width() + word.len() + 3;
    let kept = all.len().saturating_sub(2);
    let last: usize = all[kept..].iter().map(|(_, key, word)| size(key, word)).sum();
    let mut room = usize::from(row.width).saturating_sub(last);
    let mut is_full = false;
    let (mut spans, mut x) = (Vec::new(), row.x);
    for (n, (command, key, word)) in all.into_iter().enumerate() {
        let width = size(&key, word);
        is_full |= n < kept && width > room;
        if n < kept {
            if is_full {
                continue;
            }
            room -= width;
        }
        let shown = u16::try_from(width - 2).unwrap_or(0);
        drawn.hints.push((Rect { x, width: shown, ..row }, command));
        x = x.saturating_add(shown + 2);
        spans.push(Span::styled(key, theme::KEY));
        spans.push(Span::styled(format!(" {word}  "), theme::DIM));
    }
    Line::from(spans)
}

fn fixed(words: &[(&'static str, &'static str)]) -> Line<'static> {
    let span = |(key, word): &(&'static str, &'static str)| {
        [Span::styled(*key, theme::KEY), Span::styled(format!(" {word}  "), theme::DIM)]
    };
    Line::from(words.iter().flat_map(span).collect::<Vec<_>>())
}
