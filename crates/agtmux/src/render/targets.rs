//! The table of targets.

use agtmux_api::wire::{TargetItem, TargetList};
use agtmux_core::target::TargetHealth;

use super::cell::TableCell;
use super::colour::Colour;
use super::table::{TableColumn, TextTable};

pub(crate) fn targets(targets: &TargetList) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::required("TARGET", 6),
        TableColumn::required("HEALTH", 8),
        TableColumn::required("EVIDENCE", 8),
        TableColumn::required("AGENTS", 6),
        TableColumn::optional("PANES", 5),
        TableColumn::optional("AGTMUX", 6),
        TableColumn::optional("SSH", 6),
    ]);
    for TargetItem { status, panes, agents } in &targets.items {
        table.row(vec![
            TableCell::new(&status.name),
            health(status.health),
            TableCell::new(status.evidence.as_str()),
            TableCell::number(*agents),
            TableCell::number(*panes),
            TableCell::new(status.agtmux_version.as_deref().unwrap_or_default()),
            TableCell::new(status.ssh_target.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

fn health(health: TargetHealth) -> TableCell {
    let cell = TableCell::new(health.as_str());
    match health {
        TargetHealth::Ok => cell,
        TargetHealth::Degraded => cell.coloured(Colour::Yellow),
        TargetHealth::Down => cell.coloured(Colour::Red),
    }
}
