//! Adapters, a row each.

use agtmux_api::wire::{AdapterHealth, AdapterItem};

use super::cell::Cell;
use super::colour::Colour;
use super::table::{Column, Table};

pub(crate) fn adapters(items: &[AdapterItem]) -> Table {
    let mut table = Table::new(vec![
        Column::needed("ADAPTER", 8),
        Column::needed("HEALTH", 8),
        Column::needed("AGENTS", 6),
        Column::optional("VERSION", 7),
        Column::optional("EVIDENCE", 12),
        Column::optional("CAN TELL", 12),
    ]);
    for item in items {
        table.row(vec![
            Cell::new(&item.name),
            health(item),
            Cell::number(item.agents),
            Cell::new(&format!("{}.{}", item.contract, item.version)),
            Cell::new(&evidence(item)),
            Cell::new(&can_tell(item)),
        ]);
    }
    table
}

fn health(item: &AdapterItem) -> Cell {
    match item.health {
        AdapterHealth::Ok => Cell::new("ok"),
        AdapterHealth::Unused => Cell::new("unused"),
        AdapterHealth::Disabled => Cell::new("disabled"),
        AdapterHealth::Degraded => Cell::new(&format!("{} unknown", item.unknown)).coloured(Colour::Bold),
    }
}

fn evidence(item: &AdapterItem) -> String {
    let sources: Vec<&str> = item.sources.iter().map(|source| source.as_str()).collect();
    let doubt = if item.measured { "" } else { " (from its documentation only: medium confidence)" };
    sources.join(", ") + doubt
}

fn can_tell(item: &AdapterItem) -> String {
    let can = item.capabilities;
    let told = [
        (can.supports_waiting_approval, "approval"),
        (can.supports_waiting_input, "input"),
        (can.supports_completed, "completed"),
    ];
    told.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}
