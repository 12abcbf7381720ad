//! Targets, a row each.

use agtmux_api::wire::{TargetItem, Targets};
use agtmux_core::target::TargetHealth;

use super::cell::Cell;
use super::colour::Colour;
use super::table::{Column, Table};

pub(crate) fn targets(targets: &Targets) -> Table {
    let mut table = Table::new(vec![
        Column::needed("TARGET", 6),
        Column::needed("HEALTH", 8),
        Column::needed("EVIDENCE", 8),
        Column::needed("AGENTS", 6),
        Column::optional("PANES", 5),
        Column::optional("AGTMUX", 6),
        Column::optional("SSH", 6),
    ]);
    for item in &targets.items {
        table.row(vec![
            Cell::new(&item.name),
            health(item),
            Cell::new(item.evidence.as_str()),
            Cell::number(item.agents),
            Cell::number(item.panes),
            Cell::new(item.agtmux_version.as_deref().unwrap_or_default()),
            Cell::new(item.ssh_target.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

fn health(item: &TargetItem) -> Cell {
    let cell = Cell::new(item.health.as_str());
    match item.health {
        TargetHealth::Ok => cell,
        TargetHealth::Degraded => cell.coloured(Colour::Yellow),
        TargetHealth::Down => cell.coloured(Colour::Red),
    }
}
