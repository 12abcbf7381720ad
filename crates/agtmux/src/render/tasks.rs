//! Tasks, a row each.

use agtmux_core::task::TaskLook;

use super::cell::Cell;
use super::table::{Column, Table};

pub(crate) fn tasks(items: &[TaskLook]) -> Table {
    let mut table = Table::new(vec![
        Column::needed("TASK", 8),
        Column::needed("WINDOW", 3),
        Column::needed("STATE", 8),
        Column::optional("BELLS", 2),
        Column::optional("COMMAND", 10),
    ]);
    for item in items {
        let state = if item.dead { item.exit().to_string() } else { "running".into() };
        let bells = if item.bell_count > 0 { item.bell_count.to_string() } else { String::new() };
        table.row(vec![
            Cell::new(&item.window_name),
            Cell::new(&item.window_id.to_string()),
            Cell::new(&state),
            Cell::new(&bells),
            Cell::new(item.current_command.as_deref().unwrap_or_default()),
        ]);
    }
    table
}
