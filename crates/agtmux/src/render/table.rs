use super::cell::Cell;
use super::colour::Colour;
use super::fit::{GAP, Want, fit};
use crate::terminal::Terminal;

#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) least: usize,
    pub(super) optional: bool,
}

impl Column {
    pub(super) const fn needed(title: &'static str, least: usize) -> Self {
        Self { title, least, optional: false }
    }

    pub(super) const fn optional(title: &'static str, least: usize) -> Self {
        Self { title, least, optional: true }
    }
}

/// A heading and rows, not yet laid out: how wide it gets is decided when it is drawn.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The heading, then a line for each row.
    pub(crate) fn lines(&self, terminal: &Terminal) -> Vec<String> {
        let widths = fit(&self.wants(), terminal.width);
        let heading: Vec<Cell> = self.columns.iter().map(|c| Cell::new(c.title).coloured(Colour::Bold)).collect();
        std::iter::once(&heading).chain(&self.rows).map(|cells| draw(cells, &widths, terminal.colour)).collect()
    }

    fn wants(&self) -> Vec<Want> {
        let natural = |i: usize, column: &Column| {
            self.rows.iter().map(|cells| cells[i].width()).max().unwrap_or(0).max(column.title.len())
        };
        let want = |(i, column): (usize, &Column)| Want {
            natural: natural(i, column),
            least: column.least.min(natural(i, column)),
            optional: column.optional,
        };
        self.columns.iter().enumerate().map(want).collect()
    }
}

fn draw(cells: &[Cell], widths: &[usize], colour: bool) -> String {
    let shown = cells.iter().zip(widths).filter(|(_, width)| **width > 0);
    let fields: Vec<String> = shown.map(|(cell, width)| cell.draw(*width, colour)).collect();
    fields.join(&" ".repeat(GAP)).trim_end_matches(' ').to_owned()
}
