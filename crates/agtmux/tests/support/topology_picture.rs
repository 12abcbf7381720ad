//! What is there, as tmux says it and as agtmux says it, in words that can be compared.

use std::collections::BTreeSet;

use agtmux_api::wire::{Item, Listing, PaneItem, SessionItem, WindowItem};
use agtmux_testkit::World;
use serde::de::DeserializeOwned;

use super::station::Station;

/// One thing that somebody claims to be there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    Pane { server: String, session: String, window: String, pane: String, title: String, dead: bool },
    Window { server: String, session: String, window: String, name: String },
    Session { server: String, name: String, windows: u32, panes: u32 },
}

pub(crate) type Picture = BTreeSet<Claim>;

impl Claim {
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
pub(crate) struct Difference {
    whose: &'static str,
    missing: Vec<Claim>,
    surplus: Vec<Claim>,
}

pub(crate) fn compare(whose: &'static str, truth: &Picture, claimed: &Picture) -> Result<(), Difference> {
    if truth == claimed {
        return Ok(());
    }
    let missing = truth.difference(claimed).cloned().collect();
    let surplus = claimed.difference(truth).cloned().collect();
    Err(Difference { whose, missing, surplus })
}

pub(crate) fn of_tmux(stations: &[Station], scopes: &[&str]) -> Picture {
    stations.iter().flat_map(of_station).filter(|claim| scopes.contains(&claim.scope())).collect()
}

fn of_station(station: &Station) -> Vec<Claim> {
    let server = station.name();
    let mut claims = Vec::new();
    for pane in station.panes() {
        claims.push(Claim::Pane {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            pane: pane.id.clone(),
            title: pane.title.clone(),
            dead: pane.dead,
        });
        claims.push(Claim::Window {
            server: server.clone(),
            session: pane.session_name.clone(),
            window: pane.window.clone(),
            name: pane.window_name.clone(),
        });
        claims.push(station_session(station, &pane.session_name));
    }
    claims
}

/// A window that is linked twice into one session, and its panes, are in that session once.
fn station_session(station: &Station, session: &str) -> Claim {
    let within = || station.panes().iter().filter(|pane| pane.session_name == session);
    let windows: BTreeSet<&String> = within().map(|pane| &pane.window).collect();
    let panes: BTreeSet<&String> = within().map(|pane| &pane.id).collect();
    let count = |n: usize| u32::try_from(n).expect("few");
    Claim::Session {
        server: station.name(),
        name: session.to_owned(),
        windows: count(windows.len()),
        panes: count(panes.len()),
    }
}

/// What the lists say now; an error when one of them is not whole.
pub(crate) fn of_lists(world: &World, scopes: &[&str]) -> Result<Picture, String> {
    let mut claims = Picture::new();
    for scope in scopes {
        claims.extend(items(world, scope)?.iter().map(claim));
    }
    Ok(claims)
}

pub(crate) fn items(world: &World, scope: &str) -> Result<Vec<Item>, String> {
    Ok(match scope {
        "panes" => listed::<PaneItem>(world, scope)?.into_iter().map(|item| Item::Pane(Box::new(item))).collect(),
        "windows" => listed::<WindowItem>(world, scope)?.into_iter().map(Item::Window).collect(),
        _ => listed::<SessionItem>(world, scope)?.into_iter().map(Item::Session).collect(),
    })
}

/// The items of `agtmux list … --all --json`.
pub(crate) fn listed<T: DeserializeOwned>(world: &World, scope: &str) -> Result<Vec<T>, String> {
    let listing = listing::<T>(world, scope);
    if listing.partial { Err(format!("{:?}", listing.target_errors)) } else { Ok(listing.items) }
}

#[track_caller]
pub(crate) fn listing<T: DeserializeOwned>(world: &World, scope: &str) -> Listing<T> {
    let output = world.agtmux().args(["list", scope, "--all", "--json"]).output().expect("agtmux runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "agtmux list {scope}: {}, {said}", output.status);
    serde_json::from_slice(&output.stdout).expect("a list is JSON of the contract")
}

pub(crate) fn claim(item: &Item) -> Claim {
    match item {
        Item::Pane(item) => Claim::Pane {
            server: item.identity.server.clone(),
            session: item.identity.session_name.clone(),
            window: item.identity.window_id.to_string(),
            pane: item.identity.pane_id.to_string(),
            title: item.title.clone().unwrap_or_default(),
            dead: item.dead.is_some(),
        },
        Item::Window(item) => Claim::Window {
            server: item.identity.server.clone(),
            session: item.identity.session_name.clone(),
            window: item.identity.window_id.to_string(),
            name: item.window_name.clone(),
        },
        Item::Session(item) => Claim::Session {
            server: item.identity.server.clone().unwrap_or_default(),
            name: item.identity.session_name.clone(),
            windows: item.windows,
            panes: item.panes,
        },
    }
}
