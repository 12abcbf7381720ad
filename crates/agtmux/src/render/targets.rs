//! The table of targets.

use agtmux_api::wire::TargetList;
use agtmux_core::target::TargetHealth;

use super::cell::TableCell;
use super::colour::Colour;
use super::table::{TableColumn, TextTable};

pub(crate) fn targets(targets: &TargetList) -> TextTable {
    let items = &targets.items;
    let text = |text: &Option<String>| TableCell::new(text.as_deref().unwrap_or_default());
    TextTable::new(vec![
        TableColumn::required("TARGET", 6, items, |item| TableCell::new(&item.status.name)),
        TableColumn::required("HEALTH", 8, items, |item| health(item.status.health)),
        TableColumn::required("EVIDENCE", 8, items, |item| TableCell::new(item.status.evidence.as_str())),
        TableColumn::required("AGENTS", 6, items, |item| TableCell::number(item.agents)),
        TableColumn::optional("PANES", 5, items, |item| TableCell::number(item.panes)),
        TableColumn::optional("AGTMUX", 6, items, |item| text(&item.status.agtmux_version)),
        TableColumn::optional("SSH", 6, items, |item| text(&item.status.ssh_target)),
    ])
}

fn health(health: TargetHealth) -> TableCell {
    let cell = TableCell::new(health.as_str());
    match health {
        TargetHealth::Ok => cell,
        TargetHealth::Degraded => cell.coloured(Colour::Yellow),
        TargetHealth::Down => cell.coloured(Colour::Red),
    }
}
