//! The fleet as clients see it: API items, and the changes to them.

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

/// The items of one scope. One object of the fleet may have several items, and its identity may change.
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
    /// Replaces the items of these objects. Returns the removed items, and the new or changed ones.
    fn replace(&mut self, new: impl Iterator<Item = (K, Vec<(I, T)>)>) -> (Vec<Arc<T>>, Vec<Arc<T>>) {
        let new: Vec<(K, Vec<(I, T)>)> = new.collect();
        // Remove all old items first: a session may take the name that another one had.
        let old_identities: Vec<I> = new.iter().filter_map(|(key, _)| self.identities.remove(key)).flatten().collect();
        let mut before: BTreeMap<I, Arc<T>> =
            old_identities.iter().filter_map(|old| self.items.remove_entry(old)).collect();
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

/// One change to one item.
pub(crate) type ItemChange = (WatchEventKind, WatchItem);

impl FleetView {
    /// All items of the fleet, before its states are known.
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

    /// Updates the items of the changed objects. Returns the changes in the order in which they must be published.
    pub(crate) fn apply(&mut self, fleet: &Fleet, states: &StateResolver, delta: &FleetDelta) -> Vec<ItemChange> {
        let (mut removed, mut changed) = (Vec::new(), Vec::new());
        let changed_panes: BTreeSet<&PaneKey> = delta.changed.iter().chain(&delta.removed).collect();
        let panes = changed_panes.into_iter().map(|key| (key.clone(), build::panes(fleet, states, key)));
        let (old, new) = self.panes.replace(panes);
        removed.extend(old.iter().map(|item| WatchItem::Pane(Box::new((**item).clone()))));
        changed.extend(new.iter().map(|item| WatchItem::Pane(Box::new((**item).clone()))));
        let windows = delta.windows.iter().map(|key| (key.clone(), build::windows(fleet, states, key)));
        let (old, new) = self.windows.replace(windows);
        removed.extend(old.iter().map(|item| WatchItem::Window((**item).clone())));
        changed.extend(new.iter().map(|item| WatchItem::Window((**item).clone())));
        let sessions = delta.sessions.iter().map(|key| (key.clone(), build::session(fleet, states, key)));
        let (old, new) = self.sessions.replace(sessions);
        removed.extend(old.iter().map(|item| WatchItem::Session((**item).clone())));
        changed.extend(new.iter().map(|item| WatchItem::Session((**item).clone())));
        if delta.targets_changed || !delta.servers.is_empty() {
            self.errors = build::errors(fleet);
        }
        // Removals go first: a client never sees a moved object twice.
        let removed = removed.into_iter().map(|item| (WatchEventKind::Remove, item));
        removed.chain(changed.into_iter().map(|item| (WatchEventKind::Upsert, item))).collect()
    }

    /// Every item of a scope, in order.
    pub(crate) fn items(&self, scope: ListScope) -> Box<dyn Iterator<Item = WatchItem> + '_> {
        match scope {
            ListScope::Panes => Box::new(self.panes.items.values().map(|p| WatchItem::Pane(Box::new((**p).clone())))),
            ListScope::Windows => Box::new(self.windows.items.values().map(|w| WatchItem::Window((**w).clone()))),
            ListScope::Sessions => Box::new(self.sessions.items.values().map(|s| WatchItem::Session((**s).clone()))),
        }
    }

    /// The number of panes and of agents of a target.
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
