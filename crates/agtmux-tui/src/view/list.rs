//! The list of agents in aligned columns.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::row::{ListColumns, RowView};
use super::{theme, when};
use crate::model::{AgentRow, DrawnScreen, ListLine, RowGrouping, TuiModel};
use crate::text;

const MAX_AGENT: usize = 10;
const MAX_PLACE: usize = 16;
/// The columns of the marks, the age, and the blanks between columns.
const FIXED: usize = 12;
/// The directory is shown if this much room is left for it and the text.
const MIN_FOR_DIRECTORY: usize = 48;

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
            ListLine::Group { title, agents, directory } => {
                let line = group_line(model, title, *agents, directory.as_deref(), usize::from(area.width));
                frame.render_widget(line, row);
            }
            ListLine::Agent(agent) => {
                drawn.ages.extend(when::ticks(agent, now));
                let is_selected = model.list.selected_line() == Some(n);
                let view = RowView { row: agent, model, columns: &columns, is_selected };
                frame.render_widget(view.line(&place(agent, model.grouping), now), row);
                if is_selected {
                    frame.buffer_mut().set_style(row, Style::new().add_modifier(Modifier::REVERSED));
                }
            }
        }
    }
    mark_hidden(frame, area, top, lines.len());
}

/// Keeps the first line unless the selected one would not be visible. The title of a group stays with its first row.
fn first_line(top: usize, selected: usize, lines: &[ListLine], height: usize) -> usize {
    let above = selected.checked_sub(1).filter(|line| lines.get(*line).is_some_and(|line| line.agent().is_none()));
    let lowest = (selected + 1).saturating_sub(height);
    let highest = above.unwrap_or(selected).max(lowest);
    let end = lines.len().saturating_sub(height);
    top.clamp(lowest, highest).min(end.max(lowest))
}

/// Says in the right edge how many lines are above and below.
fn mark_hidden(frame: &mut Frame, area: Rect, top: usize, lines: usize) {
    let below = lines.saturating_sub(top + usize::from(area.height));
    for (hidden, y) in [(top, area.y), (below, area.bottom().saturating_sub(1))] {
        if hidden > 0 {
            let label = format!(" {hidden} more ");
            let width = u16::try_from(label.len()).unwrap_or(area.width);
            frame.buffer_mut().set_string(area.right().saturating_sub(width).max(area.x), y, label, theme::DIM);
        }
    }
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
        None if grouping == RowGrouping::Session && !row.is_pinned => {
            format!("{}.{} {}", item.window_index, item.pane_index, item.window_name)
        }
        None => row.place(),
    }
}

fn group_line(model: &TuiModel, title: &str, agents: usize, directory: Option<&str>, width: usize) -> Line<'static> {
    let home = model.look.home.as_deref();
    let title = match model.grouping {
        RowGrouping::Directory => below_home(title, home),
        _ => title.to_owned(),
    };
    let title = text::fit(&title, width.saturating_sub(8));
    let mut line = Line::from(vec![
        Span::styled(format!(" {title}"), theme::BOLD),
        Span::styled(format!("  {agents}"), theme::DIM),
    ]);
    let shown = directory.filter(|_| matches!(model.grouping, RowGrouping::Session | RowGrouping::None));
    let room = width.saturating_sub(line.width() + 3);
    if let Some(directory) = shown.filter(|_| room >= 6) {
        line.push_span(Span::styled(format!("  {}", tail(&below_home(directory, home), room).trim_end()), theme::DIM));
    }
    line
}

pub(super) fn below_home(cwd: &str, home: Option<&str>) -> String {
    match home.and_then(|home| cwd.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => cwd.to_owned(),
    }
}

/// The end of a directory, which tells more than its start.
pub(super) fn tail(directory: &str, width: usize) -> String {
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
