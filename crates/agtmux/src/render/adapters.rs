//! The table of adapters.

use std::path::Path;

use agtmux_api::wire::{AdapterHealth, AdapterItem, AdapterList};

use super::cell::TableCell;
use super::colour::Colour;
use super::table::{TableColumn, TextTable};
use crate::message::CliMessage;

pub(crate) fn adapters(adapters: &AdapterList) -> TextTable {
    let items = &adapters.items;
    let version = |item: &AdapterItem| format!("{}.{}", item.contract, item.version);
    let mut table = TextTable::new(vec![
        TableColumn::required("ADAPTER", 8, items, |item| TableCell::new(&item.name)),
        TableColumn::required("HEALTH", 8, items, health),
        TableColumn::required("AGENTS", 6, items, |item| TableCell::number(item.agents)),
        TableColumn::optional("VERSION", 7, items, |item| TableCell::new(&version(item))),
        TableColumn::optional("EVIDENCE", 12, items, |item| TableCell::new(&evidence(item))),
        TableColumn::optional("STATES", 12, items, |item| TableCell::new(&detectable_states(item))),
        TableColumn::optional("ORIGIN", 8, items, |item| TableCell::new(&origin(item))),
    ]);
    for broken in &adapters.broken {
        let stem = Path::new(&broken.file).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let mut row =
            vec![TableCell::new(&stem), TableCell::new("broken").coloured(Colour::Bold), TableCell::number(0)];
        row.extend(["", "", "", &broken.file].map(TableCell::new));
        table.row(row);
    }
    table
}

/// Errors and warnings of the user's manifests.
pub(crate) fn adapter_faults(adapters: &AdapterList) -> Vec<CliMessage> {
    let checks = |message: CliMessage, file: &str| message.hint(format!("agtmux adapters check {file}"));
    let kept = adapters.items.iter().filter_map(|item| {
        let message = CliMessage::new(item.error.as_ref()?).because("the last valid version stays in use");
        Some(checks(message, item.file.as_deref().unwrap_or_default()))
    });
    let broken = adapters.broken.iter().map(|broken| checks(CliMessage::new(&broken.error), &broken.file));
    let warnings = adapters.items.iter().flat_map(|item| &item.warnings).map(CliMessage::new);
    kept.chain(broken).chain(warnings).collect()
}

fn origin(item: &AdapterItem) -> String {
    match &item.file {
        None => "built-in".into(),
        Some(file) if item.replaces_built_in => format!("{file} (replaces the built-in)"),
        Some(file) => file.clone(),
    }
}

fn health(item: &AdapterItem) -> TableCell {
    match item.health {
        _ if item.error.is_some() => TableCell::new("invalid file").coloured(Colour::Bold),
        AdapterHealth::Ok => TableCell::new("ok"),
        AdapterHealth::Unused => TableCell::new("unused"),
        AdapterHealth::Disabled => TableCell::new("disabled"),
        AdapterHealth::Degraded => TableCell::new(&format!("{} unknown", item.unknown)).coloured(Colour::Bold),
    }
}

fn evidence(item: &AdapterItem) -> String {
    let sources: Vec<&str> = item.sources.iter().map(|source| source.as_str()).collect();
    let doubt = if item.measured { "" } else { " (from documentation only: medium confidence)" };
    sources.join(", ") + doubt
}

fn detectable_states(item: &AdapterItem) -> String {
    let can = item.capabilities;
    let states = [
        (can.supports_waiting_approval, "approval"),
        (can.supports_waiting_input, "input"),
        (can.supports_completed, "completed"),
    ];
    states.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}
