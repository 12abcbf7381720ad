//! One agent of the list.

use jiff::Timestamp;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::theme::{self, StateLook};
use super::{list, when};
use crate::keymap::TuiCommand;
use crate::model::shown::summary;
use crate::model::{AgentRow, TuiModel};
use crate::text;

/// The widths of the columns. They depend on all rows, so that scrolling does not move them.
pub(super) struct ListColumns {
    pub(super) agent: usize,
    pub(super) place: usize,
    pub(super) text: usize,
    pub(super) directory: usize,
}

pub(super) struct RowView<'a> {
    pub(super) row: &'a AgentRow,
    pub(super) model: &'a TuiModel,
    pub(super) columns: &'a ListColumns,
    pub(super) is_selected: bool,
}

impl RowView<'_> {
    pub(super) fn line(&self, place: &str, now: Timestamp) -> Line<'static> {
        let (row, columns, unicode) = (self.row, self.columns, self.model.look.unicode);
        let state = StateLook::of(row);
        let quiet = if self.is_selected { Style::new() } else { theme::DIM };
        let main = match row.is_doubtful() || row.has_ended || row.is_snoozed {
            true => quiet.add_modifier(Modifier::ITALIC),
            false => Style::new(),
        };
        let state_style = if row.is_snoozed { quiet } else { self.coloured(state.style()) };
        let age = when::column(row, &self.model.look.zone, now);
        let said_style = if row.is_waiting() { main } else { quiet };
        let chosen = if self.model.chosen.contains(&row.key) { theme::chosen(unicode) } else { " " };
        let mut spans = vec![
            Span::styled(chosen, self.coloured(theme::KEY)),
            Span::styled(state.shape(unicode), state_style),
            self.mark(),
            Span::styled(text::column(row.agent_type(), columns.agent), main),
            Span::styled(format!(" {}", text::column(place, columns.place)), main),
            Span::styled(format!(" {age:>5}  "), quiet),
            Span::styled(text::column(&self.said(), columns.text), said_style),
        ];
        if columns.directory > 0 {
            let cwd = row.item.cwd.as_deref().unwrap_or_default();
            let directory = list::below_home(cwd, self.model.look.home.as_deref());
            spans.push(Span::styled(format!(" {}", list::tail(&directory, columns.directory)), quiet));
        }
        Line::from(spans)
    }

    /// Colours of a reversed row would change its background.
    fn coloured(&self, style: Style) -> Style {
        if self.is_selected { Style::new().add_modifier(Modifier::BOLD) } else { style }
    }

    /// Whether the state is doubtful, or the agent pinned.
    fn mark(&self) -> Span<'static> {
        let unicode = self.model.look.unicode;
        let (mark, style) = match self.row {
            row if row.is_unreachable() => ("x", theme::ACCENT),
            row if row.is_doubtful() => ("?", theme::ACCENT),
            row if row.is_pinned => (theme::pinned(unicode), theme::KEY),
            _ => (" ", Style::new()),
        };
        Span::styled(mark, self.coloured(style))
    }

    fn said(&self) -> String {
        match self.row {
            row if row.has_ended && row.is_task() => {
                return format!("ended; {} lists the tasks", self.model.key(TuiCommand::Tasks));
            }
            row if row.has_ended => return format!("ended; {} resumes it", self.model.key(TuiCommand::Resume)),
            _ => {}
        }
        if let Some(reason) = self.model.filter.reason(self.row, &self.model.screens) {
            return reason;
        }
        let said = summary(&self.row.item).unwrap_or_default();
        if self.row.is_snoozed { format!("snoozed  {said}") } else { said }
    }
}
