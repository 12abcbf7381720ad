//! The fleet as everyone sees it: items ready to be sent, and what changed in them.

mod build;
mod filter;
mod listing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use agtmux_api::wire::{
    ListScope, PaneIdentity, PaneItem, SessionIdentity, SessionItem, TargetError, WatchEventKind, WatchItem,
    WindowIdentity, WindowItem,
};
use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey};
use agtmux_core::ids::{ServerKey, SessionId, WindowId};
use agtmux_core::resolver::StateResolver;

pub(crate) use filter::ItemFilter;
pub(crate) use listing::{panes, sessions, windows};

#[derive(Debug, Default)]
pub(crate) struct FleetView {
    panes: ItemIndex<PaneKey, PaneIdentity, PaneItem>,
    windows: ItemIndex<(ServerKey, WindowId), WindowIdentity, WindowItem>,
    sessions: ItemIndex<(ServerKey, SessionId), SessionIdentity, SessionItem>,
    errors: Vec<TargetError>,
}

/// Items of one scope. One thing of the fleet may be shown as several items, or under a new name.
#[derive(Debug)]
struct ItemIndex<K, I, T> {
    items: BTreeMap<I, Arc<T>>,
    identities: HashMap<K, Vec<I>>,
}

impl<K, I, T> Default for ItemIndex<K, I, T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), identities: HashMap::new() }
    }
}

impl<K: std::hash::Hash + Eq + Clone, I: Ord + Clone, T: PartialEq> ItemIndex<K, I, T> {
    /// Shows these things as these items from now on. Gives back the items that went and those that are new or
    /// different.
    fn replace(&mut self, new: impl Iterator<Item = (K, Vec<(I, T)>)>) -> (Vec<Arc<T>>, Vec<Arc<T>>) {
        let new: Vec<(K, Vec<(I, T)>)> = new.collect();
        // All that was shown is taken before anything is put: a session may get the name that another one had.
        let shown: Vec<I> = new.iter().filter_map(|(key, _)| self.identities.remove(key)).flatten().collect();
        let mut before: BTreeMap<I, Arc<T>> = shown.iter().filter_map(|old| self.items.remove_entry(old)).collect();
        let mut changed = Vec::new();
        for (key, items) in new {
            for (identity, item) in items {
                let same = before.remove(&identity).filter(|old| **old == item);
                let item = same.unwrap_or_else(|| {
                    changed.push(Arc::new(item));
                    changed[changed.len() - 1].clone()
                });
                self.identities.entry(key.clone()).or_default().push(identity.clone());
                self.items.insert(identity, item);
            }
        }
        (before.into_values().collect(), changed)
    }
}

/// One change of one item.
pub(crate) type ItemChange = (WatchEventKind, WatchItem);

impl FleetView {
    /// Everything that is in the fleet, before its states are known.
    pub(crate) fn from_fleet(fleet: &Fleet) -> Self {
        let states = StateResolver::new(jiff::SignedDuration::ZERO);
        let mut delta = FleetDelta { targets_changed: true, ..FleetDelta::default() };
        for (server, panes) in fleet.servers().map(|(key, server)| (key, &server.panes)) {
            for (id, pane) in panes {
                delta.changed.insert(PaneKey { server: server.clone(), pane: *id });
                delta.windows.insert((server.clone(), pane.window));
                delta.sessions.extend(pane.placements.iter().map(|p| (server.clone(), p.session)));
            }
        }
        let mut view = Self::default();
        view.apply(fleet, &states, &delta);
        view
    }

    /// Follows the fleet. What comes back is to be published, in this order.
    pub(crate) fn apply(&mut self, fleet: &Fleet, states: &StateResolver, delta: &FleetDelta) -> Vec<ItemChange> {
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        let touched: BTreeSet<&PaneKey> = delta.changed.iter().chain(&delta.removed).collect();
        let panes = touched.into_iter().map(|key| (key.clone(), build::panes(fleet, states, key)));
        let (old, new) = self.panes.replace(panes);
        gone.extend(old.iter().map(|item| WatchItem::Pane(Box::new((**item).clone()))));
        changed.extend(new.iter().map(|item| WatchItem::Pane(Box::new((**item).clone()))));
        let windows = delta.windows.iter().map(|key| (key.clone(), build::windows(fleet, states, key)));
        let (old, new) = self.windows.replace(windows);
        gone.extend(old.iter().map(|item| WatchItem::Window((**item).clone())));
        changed.extend(new.iter().map(|item| WatchItem::Window((**item).clone())));
        let sessions = delta.sessions.iter().map(|key| (key.clone(), build::session(fleet, states, key)));
        let (old, new) = self.sessions.replace(sessions);
        gone.extend(old.iter().map(|item| WatchItem::Session((**item).clone())));
        changed.extend(new.iter().map(|item| WatchItem::Session((**item).clone())));
        if delta.targets_changed || !delta.servers.is_empty() {
            self.errors = build::errors(fleet);
        }
        // A thing that moved goes from its old place first: a reader never sees it twice.
        let gone = gone.into_iter().map(|item| (WatchEventKind::Remove, item));
        gone.chain(changed.into_iter().map(|item| (WatchEventKind::Upsert, item))).collect()
    }

    /// Every item of a scope, in order.
    pub(crate) fn items(&self, scope: ListScope) -> Box<dyn Iterator<Item = WatchItem> + '_> {
        match scope {
            ListScope::Panes => Box::new(self.panes.items.values().map(|p| WatchItem::Pane(Box::new((**p).clone())))),
            ListScope::Windows => Box::new(self.windows.items.values().map(|w| WatchItem::Window((**w).clone()))),
            ListScope::Sessions => Box::new(self.sessions.items.values().map(|s| WatchItem::Session((**s).clone()))),
        }
    }

    /// How many panes a target has, and how many agents.
    pub(crate) fn count_panes(&self, target: &str) -> (u32, u32) {
        let mut panes = BTreeSet::new();
        let mut agents = 0;
        for pane in self.panes.items.values().filter(|pane| pane.identity.target == target) {
            if panes.insert((&pane.identity.server, pane.identity.pane_id)) {
                agents += u32::from(pane.agent_type.is_some());
            }
        }
        (u32::try_from(panes.len()).unwrap_or(u32::MAX), agents)
    }

    pub(crate) fn errors(&self) -> &[TargetError] {
        &self.errors
    }
}
