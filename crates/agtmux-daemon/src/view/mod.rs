//! The fleet as clients see it: API items, and the changes to them.

mod build;
mod mirror_panes;
mod targets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use agtmux_api::fleet_items::FleetItems;
use agtmux_api::wire::{
    ListScope, PaneIdentity, SessionIdentity, TargetError, WatchEvent, WatchEventKind, WatchItem, WindowIdentity,
};
use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey};
use agtmux_core::ids::{ServerKey, SessionId, WindowId};
use agtmux_core::resolver::StateResolver;
use jiff::Timestamp;

use crate::submissions::Submissions;
pub(crate) use mirror_panes::MirrorPanes;
pub(crate) use targets::TargetChange;

/// All items that clients see. The maps store which items belong to each pane, window and session: there may be
/// several, and their identities may change.
#[derive(Debug, Default)]
pub(crate) struct FleetView {
    pub(crate) fleet: FleetItems,
    panes: HashMap<PaneKey, Vec<PaneIdentity>>,
    windows: HashMap<(ServerKey, WindowId), Vec<WindowIdentity>>,
    sessions: HashMap<(ServerKey, SessionId), Vec<SessionIdentity>>,
}

/// The items that were removed, and the items that were added or changed.
#[derive(Default)]
struct ItemChanges {
    removed: Vec<WatchItem>,
    changed: Vec<WatchItem>,
}

impl ItemChanges {
    /// Replaces the items of the panes, windows or sessions in `new`. Records which items were removed, added or
    /// changed.
    fn replace<K, I, T>(
        &mut self,
        items: &mut BTreeMap<I, Arc<T>>,
        identities: &mut HashMap<K, Vec<I>>,
        new: impl Iterator<Item = (K, Vec<(I, T)>)>,
    ) where
        K: Hash + Eq + Clone,
        I: Ord + Clone,
        T: PartialEq,
        for<'a> WatchItem: From<&'a T>,
    {
        let new: Vec<(K, Vec<(I, T)>)> = new.collect();
        // Remove all old items first: a session may take the name that another one had.
        let old: Vec<I> = new.iter().filter_map(|(key, _)| identities.remove(key)).flatten().collect();
        let mut before: BTreeMap<I, Arc<T>> = old.iter().filter_map(|old| items.remove_entry(old)).collect();
        for (key, new) in new {
            for (identity, item) in new {
                let same = before.remove(&identity).filter(|old| **old == item);
                let item = same.unwrap_or_else(|| {
                    self.changed.push(WatchItem::from(&item));
                    Arc::new(item)
                });
                identities.entry(key.clone()).or_default().push(identity.clone());
                items.insert(identity, item);
            }
        }
        self.removed.extend(before.values().map(|item| WatchItem::from(&**item)));
    }
}

impl FleetView {
    /// Builds the items of the whole fleet. The items have no agent states yet.
    pub(crate) fn from_fleet(fleet: &Fleet, now: Timestamp) -> Self {
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
        view.apply(fleet, &states, &Submissions::default(), &MirrorPanes::default(), &delta);
        view.apply_targets(Vec::new(), now);
        view
    }

    /// Updates the items of the changed objects. Returns the events in the order in which they must be published. The
    /// event log numbers them later.
    pub(crate) fn apply(
        &mut self,
        fleet: &Fleet,
        states: &StateResolver,
        submissions: &Submissions,
        mirrors: &MirrorPanes,
        delta: &FleetDelta,
    ) -> Vec<WatchEvent> {
        let mut changes = ItemChanges::default();
        let items = &mut self.fleet;
        let changed_panes: BTreeSet<&PaneKey> = delta.changed.iter().chain(&delta.removed).collect();
        let extras = build::PaneExtras { submissions, mirrors };
        let panes = changed_panes.into_iter().map(|key| (key.clone(), build::panes(fleet, states, extras, key)));
        changes.replace(&mut items.panes, &mut self.panes, panes);
        let windows = delta.windows.iter().map(|key| (key.clone(), build::windows(fleet, states, key)));
        changes.replace(&mut items.windows, &mut self.windows, windows);
        let sessions = delta.sessions.iter().map(|key| (key.clone(), build::session(fleet, states, key)));
        changes.replace(&mut items.sessions, &mut self.sessions, sessions);
        // Removals go first: a client never sees a moved object twice.
        let event = |kind| move |item| WatchEvent::of_item(kind, item, 0, Timestamp::UNIX_EPOCH);
        let removed = changes.removed.into_iter().map(event(WatchEventKind::Remove));
        let changed = changes.changed.into_iter().map(event(WatchEventKind::Upsert));
        let outages = (delta.targets_changed || !delta.servers.is_empty()).then(|| self.update_errors(fleet));
        removed.chain(changed).chain(outages.flatten()).collect()
    }

    /// Updates the list of outages. Returns an event if the list has changed.
    fn update_errors(&mut self, fleet: &Fleet) -> Option<WatchEvent> {
        let errors = build::errors(fleet);
        if errors == self.fleet.target_errors {
            return None;
        }
        self.fleet.target_errors.clone_from(&errors);
        let event = WatchEvent::new(WatchEventKind::TargetErrors, ListScope::All, 0, Timestamp::UNIX_EPOCH);
        Some(WatchEvent { target_errors: Some(errors), ..event })
    }

    /// All items of a scope: first panes, then windows, sessions and targets.
    pub(crate) fn items(&self, scope: ListScope) -> impl Iterator<Item = WatchItem> + '_ {
        self.fleet.of_scope(scope)
    }

    pub(crate) fn errors(&self) -> &[TargetError] {
        &self.fleet.target_errors
    }
}
