//! The fleet as everyone sees it: items ready to be sent, and what changed in them.

mod build;
mod filter;
mod listing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use agtmux_api::wire::{
    EventKind, Item, PaneIdentity, PaneItem, Scope, SessionIdentity, SessionItem, TargetError, WindowIdentity,
    WindowItem,
};
use agtmux_core::engine::StateEngine;
use agtmux_core::fleet::{Delta, Fleet, PaneKey};
use agtmux_core::ids::{ServerKey, SessionId, WindowId};

pub(crate) use filter::Filter;
pub(crate) use listing::{panes, sessions, windows};

#[derive(Debug, Default)]
pub(crate) struct View {
    panes: Shown<PaneKey, PaneIdentity, PaneItem>,
    windows: Shown<(ServerKey, WindowId), WindowIdentity, WindowItem>,
    sessions: Shown<(ServerKey, SessionId), SessionIdentity, SessionItem>,
    errors: Vec<TargetError>,
}

/// Items of one scope. One thing of the fleet may be shown as several items, or under a new name.
#[derive(Debug)]
struct Shown<K, I, T> {
    items: BTreeMap<I, Arc<T>>,
    shown_as: HashMap<K, Vec<I>>,
}

impl<K, I, T> Default for Shown<K, I, T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), shown_as: HashMap::new() }
    }
}

impl<K: std::hash::Hash + Eq + Clone, I: Ord + Clone, T: PartialEq> Shown<K, I, T> {
    /// Shows this thing as these items from now on. Gives back the items that went and those that are new or different.
    fn replace(&mut self, key: &K, new: Vec<(I, T)>) -> (Vec<Arc<T>>, Vec<Arc<T>>) {
        let identities: Vec<I> = new.iter().map(|(identity, _)| identity.clone()).collect();
        let before = if identities.is_empty() {
            self.shown_as.remove(key)
        } else {
            self.shown_as.insert(key.clone(), identities.clone())
        };
        let gone = before.into_iter().flatten().filter(|old| !identities.contains(old));
        let gone = gone.filter_map(|old| self.items.remove(&old)).collect();
        let mut changed = Vec::new();
        for (identity, item) in new {
            if self.items.get(&identity).is_none_or(|old| **old != item) {
                let item = Arc::new(item);
                self.items.insert(identity, item.clone());
                changed.push(item);
            }
        }
        (gone, changed)
    }
}

/// One change of one item.
pub(crate) type Shift = (EventKind, Item);

impl View {
    /// Everything that is in the fleet, before its states are known.
    pub(crate) fn of_fleet(fleet: &Fleet) -> Self {
        let states = StateEngine::new(jiff::SignedDuration::ZERO);
        let mut delta = Delta { targets_changed: true, ..Delta::default() };
        for (server, panes) in fleet.servers().map(|(key, server)| (key, &server.panes)) {
            for (id, pane) in panes {
                delta.changed.insert(PaneKey { server: server.clone(), pane: *id });
                delta.windows.insert((server.clone(), pane.window));
                delta.sessions.extend(pane.placements.iter().map(|p| (server.clone(), p.session)));
            }
        }
        let mut view = Self::default();
        view.follow(fleet, &states, &delta);
        view
    }

    /// Follows the fleet. What comes back is to be published, in this order.
    pub(crate) fn follow(&mut self, fleet: &Fleet, states: &StateEngine, delta: &Delta) -> Vec<Shift> {
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        let touched: BTreeSet<&PaneKey> = delta.changed.iter().chain(&delta.removed).collect();
        for key in touched {
            let (old, new) = self.panes.replace(key, build::panes(fleet, states, key));
            gone.extend(old.iter().map(|item| Item::Pane(Box::new((**item).clone()))));
            changed.extend(new.iter().map(|item| Item::Pane(Box::new((**item).clone()))));
        }
        for key in &delta.windows {
            let (old, new) = self.windows.replace(key, build::windows(fleet, states, key));
            gone.extend(old.iter().map(|item| Item::Window((**item).clone())));
            changed.extend(new.iter().map(|item| Item::Window((**item).clone())));
        }
        for key in &delta.sessions {
            let (old, new) = self.sessions.replace(key, build::session(fleet, states, key));
            gone.extend(old.iter().map(|item| Item::Session((**item).clone())));
            changed.extend(new.iter().map(|item| Item::Session((**item).clone())));
        }
        if delta.targets_changed || !delta.servers.is_empty() {
            self.errors = build::errors(fleet);
        }
        // A thing that moved goes from its old place first: a reader never sees it twice.
        let gone = gone.into_iter().map(|item| (EventKind::Remove, item));
        gone.chain(changed.into_iter().map(|item| (EventKind::Upsert, item))).collect()
    }

    /// Every item of a scope, in order.
    pub(crate) fn items(&self, scope: Scope) -> Box<dyn Iterator<Item = Item> + '_> {
        match scope {
            Scope::Panes => Box::new(self.panes.items.values().map(|p| Item::Pane(Box::new((**p).clone())))),
            Scope::Windows => Box::new(self.windows.items.values().map(|w| Item::Window((**w).clone()))),
            Scope::Sessions => Box::new(self.sessions.items.values().map(|s| Item::Session((**s).clone()))),
        }
    }

    pub(crate) fn errors(&self) -> &[TargetError] {
        &self.errors
    }
}
