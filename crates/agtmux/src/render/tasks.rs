//! The table of tasks.

use agtmux_core::task::TaskSnapshot;

use super::cell::TableCell;
use super::table::{TableColumn, TextTable};

pub(crate) fn tasks(items: &[TaskSnapshot]) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::required("TASK", 8),
        TableColumn::required("WINDOW", 3),
        TableColumn::required("STATE", 8),
        TableColumn::optional("BELLS", 2),
        TableColumn::optional("COMMAND", 10),
    ]);
    for item in items {
        let state = if item.dead { item.exit().to_string() } else { "running".into() };
        let bells = if item.bell_count > 0 { item.bell_count.to_string() } else { String::new() };
        table.row(vec![
            TableCell::new(&item.window_name),
            TableCell::new(&item.window_id.to_string()),
            TableCell::new(&state),
            TableCell::new(&bells),
            TableCell::new(item.current_command.as_deref().unwrap_or_default()),
        ]);
    }
    table
}
