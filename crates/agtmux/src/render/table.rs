use super::cell::TableCell;
use super::colour::Colour;
use super::fit::{ColumnWidth, GAP, fit_columns};
use crate::terminal::StdoutTerminal;

#[derive(Debug)]
pub(super) struct TableColumn {
    title: &'static str,
    min_width: usize,
    optional: bool,
    cells: Vec<TableCell>,
}

impl TableColumn {
    /// A column with one cell per item. The column is never hidden.
    pub(super) fn required<T>(title: &'static str, least: usize, items: &[T], cell: impl Fn(&T) -> TableCell) -> Self {
        Self { title, min_width: least, optional: false, cells: items.iter().map(cell).collect() }
    }

    /// A column that is hidden if there is no room.
    pub(super) fn optional<T>(title: &'static str, least: usize, items: &[T], cell: impl Fn(&T) -> TableCell) -> Self {
        Self { optional: true, ..Self::required(title, least, items, cell) }
    }

    fn width(&self) -> ColumnWidth {
        let natural = self.cells.iter().map(TableCell::width).max().unwrap_or(0).max(self.title.len());
        ColumnWidth { natural, min: self.min_width.min(natural), optional: self.optional }
    }
}

/// A table with a header and rows. The column widths are computed when the table is drawn.
#[derive(Debug)]
pub(crate) struct TextTable {
    columns: Vec<TableColumn>,
}

impl TextTable {
    pub(super) fn new(columns: Vec<TableColumn>) -> Self {
        Self { columns }
    }

    /// Adds a row with one cell per column.
    pub(super) fn row(&mut self, cells: Vec<TableCell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.cells.push(cell));
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The header and one line per row.
    pub(crate) fn lines(&self, terminal: &StdoutTerminal) -> Vec<String> {
        let widths: Vec<ColumnWidth> = self.columns.iter().map(TableColumn::width).collect();
        let widths = fit_columns(&widths, terminal.width);
        let heading: Vec<TableCell> =
            self.columns.iter().map(|column| TableCell::new(column.title).coloured(Colour::Bold)).collect();
        let row = |n: usize| draw(self.columns.iter().map(|column| &column.cells[n]), &widths, terminal.colour);
        std::iter::once(draw(heading.iter(), &widths, terminal.colour)).chain((0..self.len()).map(row)).collect()
    }
}

fn draw<'a>(cells: impl Iterator<Item = &'a TableCell>, widths: &[usize], colour: bool) -> String {
    let shown = cells.zip(widths).filter(|(_, width)| **width > 0);
    let fields: Vec<String> = shown.map(|(cell, width)| cell.draw(*width, colour)).collect();
    fields.join(&" ".repeat(GAP)).trim_end_matches(' ').to_owned()
}
