//! What is there, as tmux says it and as agtmux says it, in words that can be compared.

use std::collections::BTreeSet;

use agtmux_api::wire::{ListResponse, PaneItem, SessionItem, WatchItem, WindowItem};
use agtmux_testkit::TestWorld;
use serde::de::DeserializeOwned;

use super::station::ModelServer;

/// One thing that somebody claims to be there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopologyEntry {
    Pane { server: String, session: String, window: String, pane: String, title: String, dead: bool },
    Window { server: String, session: String, window: String, name: String },
    Session { server: String, name: String, windows: u32, panes: u32 },
}

pub(crate) type TopologyEntries = BTreeSet<TopologyEntry>;

impl TopologyEntry {
    /// The list, and the stream, in which it is told.
    pub(crate) fn scope(&self) -> &'static str {
        match self {
            Self::Pane { .. } => "panes",
            Self::Window { .. } => "windows",
            Self::Session { .. } => "sessions",
        }
    }
}

/// What one side has and the other lacks.
#[derive(Debug)]
#[expect(dead_code, reason = "read by people, in the message of a failed wait")]
pub(crate) struct TopologyDifference {
    source: &'static str,
    missing: Vec<TopologyEntry>,
    unexpected: Vec<TopologyEntry>,
}

pub(crate) fn compare(
    whose: &'static str,
    truth: &TopologyEntries,
    claimed: &TopologyEntries,
) -> Result<(), TopologyDifference> {
    if truth == claimed {
        return Ok(());
    }
    let missing = truth.difference(claimed).cloned().collect();
    let surplus = claimed.difference(truth).cloned().collect();
    Err(TopologyDifference { source: whose, missing, unexpected: surplus })
}

pub(crate) fn entries_of_tmux(stations: &[ModelServer], scopes: &[&str]) -> TopologyEntries {
    stations.iter().flat_map(entries_of_server).filter(|claim| scopes.contains(&claim.scope())).collect()
}

fn entries_of_server(station: &ModelServer) -> Vec<TopologyEntry> {
    let server = station.name();
    let mut claims = Vec::new();
    for pane in station.panes() {
        claims.push(TopologyEntry::Pane {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            pane: pane.id.clone(),
            title: pane.title.clone(),
            dead: pane.dead,
        });
        claims.push(TopologyEntry::Window {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            name: pane.window_name.clone(),
        });
        claims.push(session_entry(station, &pane.session_name));
    }
    claims
}

/// A window that is linked twice into one session, and its panes, are in that session once.
fn session_entry(station: &ModelServer, session: &str) -> TopologyEntry {
    let within = || station.panes().iter().filter(|pane| pane.session_name == session);
    let windows: BTreeSet<&String> = within().map(|pane| &pane.window).collect();
    let panes: BTreeSet<&String> = within().map(|pane| &pane.id).collect();
    let count = |n: usize| u32::try_from(n).expect("few");
    TopologyEntry::Session {
        server: station.name(),
        name: session.to_owned(),
        windows: count(windows.len()),
        panes: count(panes.len()),
    }
}

/// What the lists say now; an error when one of them is not whole.
pub(crate) fn entries_of_lists(world: &TestWorld, scopes: &[&str]) -> Result<TopologyEntries, String> {
    let mut claims = TopologyEntries::new();
    for scope in scopes {
        claims.extend(items(world, scope)?.iter().map(entry_of_item));
    }
    Ok(claims)
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
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "agtmux list {scope}: {}, {said}", output.status);
    serde_json::from_slice(&output.stdout).expect("a list is JSON of the contract")
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
    }
}
