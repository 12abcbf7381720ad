use super::cell::TableCell;
use super::colour::Colour;
use super::fit::{ColumnWidth, GAP, fit_columns};
use crate::terminal::StdoutTerminal;

#[derive(Debug, Clone, Copy)]
pub(super) struct TableColumn {
    pub(super) title: &'static str,
    pub(super) min_width: usize,
    pub(super) optional: bool,
}

impl TableColumn {
    pub(super) const fn required(title: &'static str, least: usize) -> Self {
        Self { title, min_width: least, optional: false }
    }

    pub(super) const fn optional(title: &'static str, least: usize) -> Self {
        Self { title, min_width: least, optional: true }
    }
}

/// A header and rows. The column widths are computed when the table is drawn.
#[derive(Debug)]
pub(crate) struct TextTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    pub(super) fn new(columns: Vec<TableColumn>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<TableCell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The header and one line per row.
    pub(crate) fn lines(&self, terminal: &StdoutTerminal) -> Vec<String> {
        let widths = fit_columns(&self.column_widths(), terminal.width);
        let heading: Vec<TableCell> =
            self.columns.iter().map(|c| TableCell::new(c.title).coloured(Colour::Bold)).collect();
        std::iter::once(&heading).chain(&self.rows).map(|cells| draw(cells, &widths, terminal.colour)).collect()
    }

    fn column_widths(&self) -> Vec<ColumnWidth> {
        let natural = |i: usize, column: &TableColumn| {
            self.rows.iter().map(|cells| cells[i].width()).max().unwrap_or(0).max(column.title.len())
        };
        let want = |(i, column): (usize, &TableColumn)| ColumnWidth {
            natural: natural(i, column),
            min: column.min_width.min(natural(i, column)),
            optional: column.optional,
        };
        self.columns.iter().enumerate().map(want).collect()
    }
}

fn draw(cells: &[TableCell], widths: &[usize], colour: bool) -> String {
    let shown = cells.iter().zip(widths).filter(|(_, width)| **width > 0);
    let fields: Vec<String> = shown.map(|(cell, width)| cell.draw(*width, colour)).collect();
    fields.join(&" ".repeat(GAP)).trim_end_matches(' ').to_owned()
}
