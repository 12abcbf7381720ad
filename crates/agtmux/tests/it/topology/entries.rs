//! The topology according to tmux and to agtmux, in a form that can be compared.

use std::collections::BTreeSet;

use agtmux_api::wire::{ListResponse, PaneItem, SessionItem, WatchItem, WindowItem};
use agtmux_testkit::TestWorld;
use serde::de::DeserializeOwned;

use super::model_server::ModelServer;

/// A pane, window or session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopologyEntry {
    Pane { server: String, session: String, window: String, pane: String, title: String, dead: bool },
    Window { server: String, session: String, window: String, name: String },
    Session { server: String, name: String, windows: u32, panes: u32 },
}

pub(crate) type TopologyEntries = BTreeSet<TopologyEntry>;

impl TopologyEntry {
    /// The scope of the list and stream that contain this entry.
    pub(crate) fn scope(&self) -> &'static str {
        match self {
            Self::Pane { .. } => "panes",
            Self::Window { .. } => "windows",
            Self::Session { .. } => "sessions",
        }
    }
}

/// The entries that differ between two sources.
#[derive(Debug)]
#[expect(dead_code, reason = "printed in the message of a failed wait")]
pub(crate) struct TopologyDifference {
    source: &'static str,
    missing: Vec<TopologyEntry>,
    unexpected: Vec<TopologyEntry>,
}

pub(crate) fn compare(
    source: &'static str,
    expected: &TopologyEntries,
    actual: &TopologyEntries,
) -> Result<(), TopologyDifference> {
    if expected == actual {
        return Ok(());
    }
    let missing = expected.difference(actual).cloned().collect();
    let unexpected = actual.difference(expected).cloned().collect();
    Err(TopologyDifference { source, missing, unexpected })
}

pub(crate) fn entries_of_tmux(servers: &[ModelServer], scopes: &[&str]) -> TopologyEntries {
    servers.iter().flat_map(entries_of_server).filter(|entry| scopes.contains(&entry.scope())).collect()
}

fn entries_of_server(model: &ModelServer) -> Vec<TopologyEntry> {
    let server = model.name();
    let mut entries = Vec::new();
    for pane in model.panes() {
        entries.push(TopologyEntry::Pane {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            pane: pane.id.clone(),
            title: pane.title.clone(),
            dead: pane.dead,
        });
        entries.push(TopologyEntry::Window {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            name: pane.window_name.clone(),
        });
        entries.push(session_entry(model, &pane.session_name));
    }
    entries
}

/// The entry of a session. If a window is linked twice into the session, the window and its panes are counted once.
fn session_entry(model: &ModelServer, session: &str) -> TopologyEntry {
    let within = || model.panes().iter().filter(|pane| pane.session_name == session);
    let windows: BTreeSet<&String> = within().map(|pane| &pane.window).collect();
    let panes: BTreeSet<&String> = within().map(|pane| &pane.id).collect();
    let count = |n: usize| u32::try_from(n).expect("few");
    TopologyEntry::Session {
        server: model.name(),
        name: session.to_owned(),
        windows: count(windows.len()),
        panes: count(panes.len()),
    }
}

/// The entries of the lists. Fails if a list is partial.
pub(crate) fn entries_of_lists(world: &TestWorld, scopes: &[&str]) -> Result<TopologyEntries, String> {
    let mut entries = TopologyEntries::new();
    for scope in scopes {
        entries.extend(items(world, scope)?.iter().map(entry_of_item));
    }
    Ok(entries)
}

pub(crate) fn items(world: &TestWorld, scope: &str) -> Result<Vec<WatchItem>, String> {
    Ok(match scope {
        "panes" => listed::<PaneItem>(world, scope)?.into_iter().map(|item| WatchItem::Pane(Box::new(item))).collect(),
        "windows" => listed::<WindowItem>(world, scope)?.into_iter().map(WatchItem::Window).collect(),
        _ => listed::<SessionItem>(world, scope)?.into_iter().map(WatchItem::Session).collect(),
    })
}

/// The items of `agtmux list … --all --json`.
pub(crate) fn listed<T: DeserializeOwned>(world: &TestWorld, scope: &str) -> Result<Vec<T>, String> {
    let listing = listing::<T>(world, scope);
    if listing.partial { Err(format!("{:?}", listing.target_errors)) } else { Ok(listing.items) }
}

#[track_caller]
pub(crate) fn listing<T: DeserializeOwned>(world: &TestWorld, scope: &str) -> ListResponse<T> {
    let output = world.agtmux().args(["list", scope, "--all", "--json"]).output().expect("agtmux runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "agtmux list {scope}: {}, {stderr}", output.status);
    serde_json::from_slice(&output.stdout).expect("valid JSON of a listing")
}

pub(crate) fn entry_of_item(item: &WatchItem) -> TopologyEntry {
    match item {
        WatchItem::Pane(item) => TopologyEntry::Pane {
            server: item.identity.server.clone(),
            session: item.identity.session_name.clone(),
            window: item.identity.window_id.to_string(),
            pane: item.identity.pane_id.to_string(),
            title: item.title.clone().unwrap_or_default(),
            dead: item.dead.is_some(),
        },
        WatchItem::Window(item) => TopologyEntry::Window {
            server: item.identity.server.clone(),
            session: item.identity.session_name.clone(),
            window: item.identity.window_id.to_string(),
            name: item.window_name.clone(),
        },
        WatchItem::Session(item) => TopologyEntry::Session {
            server: item.identity.server.clone().unwrap_or_default(),
            name: item.identity.session_name.clone(),
            windows: item.windows,
            panes: item.panes,
        },
        WatchItem::Target(target) => unreachable!("targets are not part of the topology: {}", target.name),
    }
}
