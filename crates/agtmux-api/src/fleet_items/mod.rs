//! The items of the fleet: panes, windows, sessions and targets. The daemon serves lists of them. A client keeps a copy
//! by applying the events of the event stream. The daemon and the client share this code, so that filters, order and
//! counts are the same.

mod filter;
mod lists;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use filter::ItemFilter;

use crate::wire::{
    ListScope, PaneIdentity, PaneItem, SessionIdentity, SessionItem, TargetError, TargetStatus, WatchEvent,
    WatchEventKind, WatchItem, WindowIdentity, WindowItem,
};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FleetItems {
    pub panes: BTreeMap<PaneIdentity, Arc<PaneItem>>,
    pub windows: BTreeMap<WindowIdentity, Arc<WindowItem>>,
    pub sessions: BTreeMap<SessionIdentity, Arc<SessionItem>>,
    pub targets: BTreeMap<String, Arc<TargetStatus>>,
    pub target_errors: Vec<TargetError>,
}

impl FleetItems {
    /// Applies an event of the event stream.
    pub fn apply(&mut self, event: WatchEvent) {
        if event.kind == WatchEventKind::Reset {
            *self = Self::default();
        }
        if let Some(errors) = event.target_errors {
            self.target_errors = errors;
        }
        let is_gone = event.kind == WatchEventKind::Remove;
        match event.item {
            Some(WatchItem::Pane(pane)) => put(&mut self.panes, pane.identity.clone(), pane.into(), is_gone),
            Some(WatchItem::Window(window)) => put(&mut self.windows, window.identity.clone(), window.into(), is_gone),
            Some(WatchItem::Session(item)) => put(&mut self.sessions, item.identity.clone(), item.into(), is_gone),
            Some(WatchItem::Target(target)) => put(&mut self.targets, target.name.clone(), target.into(), is_gone),
            None => {}
        }
    }

    /// All items of the types that the scope includes, in order.
    pub fn of_scope(&self, scope: ListScope) -> impl Iterator<Item = WatchItem> + '_ {
        let panes = scope.includes(ListScope::Panes).then(|| self.panes.values()).into_iter().flatten();
        let windows = scope.includes(ListScope::Windows).then(|| self.windows.values()).into_iter().flatten();
        let sessions = scope.includes(ListScope::Sessions).then(|| self.sessions.values()).into_iter().flatten();
        let targets = scope.includes(ListScope::Targets).then(|| self.targets.values()).into_iter().flatten();
        let (panes, windows) = (panes.map(|pane| (&**pane).into()), windows.map(|window| (&**window).into()));
        let (sessions, targets) = (sessions.map(|session| (&**session).into()), targets.map(|t| (&**t).into()));
        panes.chain(windows).chain(sessions).chain(targets)
    }
}

fn put<I: Ord, T>(items: &mut BTreeMap<I, Arc<T>>, identity: I, item: Arc<T>, is_gone: bool) {
    if is_gone {
        items.remove(&identity);
    } else {
        items.insert(identity, item);
    }
}
