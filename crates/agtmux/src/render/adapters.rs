//! Adapters, a row each.

use std::path::Path;

use agtmux_api::wire::{AdapterHealth, AdapterItem, Adapters};

use super::cell::Cell;
use super::colour::Colour;
use super::table::{Column, Table};
use crate::message::Message;

pub(crate) fn adapters(adapters: &Adapters) -> Table {
    let mut table = Table::new(vec![
        Column::needed("ADAPTER", 8),
        Column::needed("HEALTH", 8),
        Column::needed("AGENTS", 6),
        Column::optional("VERSION", 7),
        Column::optional("EVIDENCE", 12),
        Column::optional("CAN TELL", 12),
        Column::optional("ORIGIN", 8),
    ]);
    for item in &adapters.items {
        table.row(vec![
            Cell::new(&item.name),
            health(item),
            Cell::number(item.agents),
            Cell::new(&format!("{}.{}", item.contract, item.version)),
            Cell::new(&evidence(item)),
            Cell::new(&can_tell(item)),
            Cell::new(&origin(item)),
        ]);
    }
    for broken in &adapters.broken {
        let stem = Path::new(&broken.file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let mut row = vec![Cell::new(&stem), Cell::new("broken").coloured(Colour::Bold), Cell::number(0)];
        row.extend(["", "", "", &broken.file].map(Cell::new));
        table.row(row);
    }
    table
}

/// What is wrong with the user's own.
pub(crate) fn faults(adapters: &Adapters) -> Vec<Message> {
    let checks = |message: Message, file: &str| message.hint(format!("agtmux adapters check {file}"));
    let kept = adapters.items.iter().filter_map(|item| {
        let message = Message::new(item.error.as_ref()?).because("what was right before is still in force");
        Some(checks(message, item.file.as_deref().unwrap_or_default()))
    });
    let broken = adapters.broken.iter().map(|broken| checks(Message::new(&broken.error), &broken.file));
    let warnings = adapters.items.iter().flat_map(|item| &item.warnings).map(Message::new);
    kept.chain(broken).chain(warnings).collect()
}

fn origin(item: &AdapterItem) -> String {
    match &item.file {
        None => "built-in".into(),
        Some(file) if item.replaces_built_in => format!("{file} (replaces the built-in)"),
        Some(file) => file.clone(),
    }
}

fn health(item: &AdapterItem) -> Cell {
    match item.health {
        _ if item.error.is_some() => Cell::new("faulty file").coloured(Colour::Bold),
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
