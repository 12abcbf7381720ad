//! The list of agents in aligned columns.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::theme::{self, StateLook};
use crate::age;
use crate::model::shown::summary;
use crate::model::{AgentRow, DrawnScreen, ListLine, RowGrouping, TerminalLook, TuiModel};
use crate::text;

const MAX_AGENT: usize = 10;
const MAX_PLACE: usize = 16;
/// The columns of the shape, the age, and the blanks between columns.
const FIXED: usize = 10;
/// The directory is shown if this much room is left for it and the text.
const MIN_FOR_DIRECTORY: usize = 30;

/// The widths of the columns. They depend on all rows, so that scrolling does not move them.
struct ListColumns {
    agent: usize,
    place: usize,
    text: usize,
    directory: usize,
}

pub(super) fn draw(frame: &mut Frame, area: Rect, model: &TuiModel, now: Timestamp, drawn: &mut DrawnScreen) {
    let lines = model.list.lines();
    let height = usize::from(area.height);
    let top = first_line(model.drawn.top, model.list.selected_line().unwrap_or(0), lines, height);
    // One blank column at the right edge.
    let columns = columns(model, usize::from(area.width).saturating_sub(1));
    drawn.list = area;
    drawn.top = top;
    for (y, (n, line)) in (area.y..area.bottom()).zip(lines.iter().enumerate().skip(top)) {
        let row = Rect { y, height: 1, ..area };
        match line {
            ListLine::Group { title, agents } => {
                frame.render_widget(group_line(model, title, *agents, usize::from(area.width)), row);
            }
            ListLine::Agent(agent) => {
                drawn.ages.extend(agent.item.since.filter(|_| !agent.has_ended));
                let is_selected = model.list.selected_line() == Some(n);
                let place = place(agent, model.grouping);
                frame.render_widget(agent_line(agent, &place, &columns, &model.look, now, is_selected), row);
                if is_selected {
                    frame.buffer_mut().set_style(row, Style::new().add_modifier(Modifier::REVERSED));
                }
            }
        }
    }
}

/// Keeps the first line unless the selected one would not be visible. The title of a group stays with its first row.
fn first_line(top: usize, selected: usize, lines: &[ListLine], height: usize) -> usize {
    let above = selected.checked_sub(1).filter(|line| lines.get(*line).is_some_and(|line| line.agent().is_none()));
    let lowest = (selected + 1).saturating_sub(height);
    let highest = above.unwrap_or(selected).max(lowest);
    let end = lines.len().saturating_sub(height);
    top.clamp(lowest, highest).min(end.max(lowest))
}

fn columns(model: &TuiModel, width: usize) -> ListColumns {
    let widest = |of: &dyn Fn(&AgentRow) -> usize| model.list.rows().map(of).max().unwrap_or(0);
    let agent = widest(&|row| row.agent_type().width()).min(MAX_AGENT);
    let limit = MAX_PLACE.min(width / 4);
    let place = widest(&|row| place(row, model.grouping).width()).min(limit);
    let rest = width.saturating_sub(FIXED + agent + place);
    let shows_directory = rest >= MIN_FOR_DIRECTORY && model.grouping != RowGrouping::Directory;
    let directory = if shows_directory { rest / 3 } else { 0 };
    let text = rest.saturating_sub(if shows_directory { directory + 1 } else { 0 });
    ListColumns { agent, place, text, directory }
}

/// The name of the agent, or its place. In a group of one session, the place is only window and pane.
fn place(row: &AgentRow, grouping: RowGrouping) -> String {
    let item = &row.item;
    match &item.name {
        Some(name) => name.clone(),
        None if grouping == RowGrouping::Session => {
            format!("{}.{} {}", item.window_index, item.pane_index, item.window_name)
        }
        None => row.place(),
    }
}

fn group_line(model: &TuiModel, title: &str, agents: usize, width: usize) -> Line<'static> {
    let title = match model.grouping {
        RowGrouping::Directory => below_home(title, model.look.home.as_deref()),
        _ => title.to_owned(),
    };
    let title = text::fit(&title, width.saturating_sub(8));
    Line::from(vec![Span::styled(format!(" {title}"), theme::BOLD), Span::styled(format!("  {agents}"), theme::DIM)])
}

fn agent_line(
    row: &AgentRow,
    place: &str,
    columns: &ListColumns,
    look: &TerminalLook,
    now: Timestamp,
    is_selected: bool,
) -> Line<'static> {
    let state = StateLook::of(row);
    // Colours of a reversed row would change its background.
    let coloured = |style: Style| if is_selected { Style::new().add_modifier(Modifier::BOLD) } else { style };
    let quiet = if is_selected { Style::new() } else { theme::DIM };
    let main = match row.is_doubtful() || row.has_ended {
        true => quiet.add_modifier(Modifier::ITALIC),
        false => Style::new(),
    };
    let doubt = if row.is_unreachable() {
        "x"
    } else if row.is_doubtful() {
        "?"
    } else {
        " "
    };
    let age = row.item.since.filter(|_| !row.has_ended).map_or_else(String::new, |since| age::age(since, now));
    let said = match row.has_ended {
        true => "ended; r resumes it".to_owned(),
        false => summary(&row.item).unwrap_or_default(),
    };
    let said_style = if row.is_waiting() { main } else { quiet };
    let mut spans = vec![
        Span::styled(format!(" {}", state.shape(look.unicode)), coloured(state.style())),
        Span::styled(doubt, coloured(theme::ACCENT)),
        Span::styled(text::column(row.agent_type(), columns.agent), main),
        Span::styled(format!(" {}", text::column(place, columns.place)), main),
        Span::styled(format!(" {age:>3}  "), quiet),
        Span::styled(text::column(&said, columns.text), said_style),
    ];
    if columns.directory > 0 {
        let directory = below_home(row.item.cwd.as_deref().unwrap_or_default(), look.home.as_deref());
        spans.push(Span::styled(format!(" {}", tail(&directory, columns.directory)), quiet));
    }
    Line::from(spans)
}

pub(super) fn below_home(cwd: &str, home: Option<&str>) -> String {
    match home.and_then(|home| cwd.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => cwd.to_owned(),
    }
}

/// The end of a directory, which tells more than its start.
fn tail(directory: &str, width: usize) -> String {
    let shown = text::safe(directory);
    if shown.width() <= width {
        return text::column(&shown, width);
    }
    let mut kept = String::new();
    for c in shown.chars().rev() {
        if kept.width() + 2 + usize::from(!c.is_ascii()) > width {
            break;
        }
        kept.insert(0, c);
    }
    text::column(&format!("…{kept}"), width)
}
