//! The table of tasks.

use agtmux_core::task::TaskSnapshot;

use super::cell::TableCell;
use super::table::{TableColumn, TextTable};

pub(crate) fn tasks(items: &[TaskSnapshot]) -> TextTable {
    let state = |item: &TaskSnapshot| if item.dead { item.exit().to_string() } else { "running".into() };
    let bells = |item: &TaskSnapshot| if item.bell_count > 0 { item.bell_count.to_string() } else { String::new() };
    TextTable::new(vec![
        TableColumn::required("TASK", 8, items, |item| TableCell::new(&item.window_name)),
        TableColumn::required("WINDOW", 3, items, |item| TableCell::new(&item.window_id.to_string())),
        TableColumn::required("STATE", 8, items, |item| TableCell::new(&state(item))),
        TableColumn::optional("BELLS", 2, items, |item| TableCell::new(&bells(item))),
        TableColumn::optional("COMMAND", 10, items, |item| {
            TableCell::new(item.current_command.as_deref().unwrap_or_default())
        }),
    ])
}
