//! Answers the three list requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{
    ListQuery, ListResponse, ListSummary, PaneIdentity, PaneItem, SessionGrouping, SessionIdentity, SessionItem,
    StateTally, TargetCounts, TargetError, WindowItem,
};
use agtmux_core::ids::PaneId;
use agtmux_core::rollup::StateCounts;
use jiff::Timestamp;

use super::{FleetView, ItemFilter};

pub(crate) fn panes(
    view: &FleetView,
    query: &ListQuery,
    filter: &ItemFilter,
    now: Timestamp,
) -> ListResponse<Arc<PaneItem>> {
    let items: Vec<_> = view.panes.items.values().filter(|pane| filter.accepts_pane(pane)).cloned().collect();
    let summary = summary(items.iter().map(Arc::as_ref));
    listing(view, query, filter, summary, items, now)
}

pub(crate) fn windows(
    view: &FleetView,
    query: &ListQuery,
    filter: &ItemFilter,
    now: Timestamp,
) -> ListResponse<Arc<WindowItem>> {
    let items: Vec<_> = view.windows.items.values().filter(|window| filter.accepts_window(window)).cloned().collect();
    let shown: BTreeSet<_> =
        items.iter().map(|w| (&w.identity.target, &w.identity.server, w.identity.window_id)).collect();
    let in_window =
        |pane: &&PaneItem| shown.contains(&(&pane.identity.target, &pane.identity.server, pane.identity.window_id));
    let summary = summary(view.panes.items.values().map(Arc::as_ref).filter(in_window));
    listing(view, query, filter, summary, items, now)
}

pub(crate) fn sessions(
    view: &FleetView,
    query: &ListQuery,
    filter: &ItemFilter,
    now: Timestamp,
) -> ListResponse<Arc<SessionItem>> {
    let items: Vec<_> = view.sessions.items.values().filter(|s| filter.accepts_session(s)).cloned().collect();
    let shown: BTreeSet<_> = items.iter().map(|s| session_key(&s.identity)).collect();
    let in_session = |pane: &&PaneItem| shown.contains(&session_key_of_pane(&pane.identity));
    let summary = summary(view.panes.items.values().map(Arc::as_ref).filter(in_session));
    let items = match query.group_by.unwrap_or_default() {
        SessionGrouping::TargetSession => items,
        SessionGrouping::SessionName => merge_by_name(&items),
    };
    listing(view, query, filter, summary, items, now)
}

type SessionKey<'a> = (Option<&'a str>, Option<&'a str>, &'a str);

fn session_key(identity: &SessionIdentity) -> SessionKey<'_> {
    (identity.target.as_deref(), identity.server.as_deref(), &identity.session_name)
}

fn session_key_of_pane(identity: &PaneIdentity) -> SessionKey<'_> {
    (Some(&identity.target), Some(&identity.server), &identity.session_name)
}

fn listing<T>(
    view: &FleetView,
    query: &ListQuery,
    filter: &ItemFilter,
    summary: ListSummary,
    items: Vec<T>,
    now: Timestamp,
) -> ListResponse<T> {
    let applies = |error: &&TargetError| filter.target().is_none_or(|target| error.target == target);
    let target_errors: Vec<_> = view.errors.iter().filter(applies).cloned().collect();
    ListResponse {
        schema_version: SCHEMA_VERSION,
        generated_at: now,
        filters: query.filters(),
        summary,
        partial: !target_errors.is_empty(),
        target_errors,
        items,
    }
}

/// Counts each agent once, even if several sessions show its pane.
fn summary<'a>(panes: impl Iterator<Item = &'a PaneItem>) -> ListSummary {
    let mut counted: BTreeSet<(&str, &str, PaneId)> = BTreeSet::new();
    let mut states = StateCounts::default();
    let mut summary = ListSummary::default();
    for pane in panes {
        let (Some(state), Some(agent)) = (pane.state, &pane.agent_type) else { continue };
        let id = &pane.identity;
        if !counted.insert((&id.target, &id.server, id.pane_id)) {
            continue;
        }
        states.add(state);
        *summary.by_agent.entry(agent.to_string()).or_default() += 1;
        *summary.by_target.entry(id.target.clone()).or_default() += 1;
    }
    ListSummary { by_state: StateTally::from(&states), ..summary }
}

fn merge_by_name(items: &[Arc<SessionItem>]) -> Vec<Arc<SessionItem>> {
    let mut merged: BTreeMap<&str, SessionItem> = BTreeMap::new();
    for item in items {
        match merged.get_mut(item.identity.session_name.as_str()) {
            None => {
                merged.insert(&item.identity.session_name, (**item).clone());
            }
            Some(into) => merge(into, item),
        }
    }
    merged.into_values().map(Arc::new).collect()
}

fn merge(into: &mut SessionItem, from: &SessionItem) {
    let keep_if_same = |a: &mut Option<String>, b: &Option<String>| {
        if a != b {
            *a = None;
        }
    };
    keep_if_same(&mut into.identity.target, &from.identity.target);
    keep_if_same(&mut into.identity.server, &from.identity.server);
    add(&mut into.counts, &from.counts);
    into.windows += from.windows;
    into.panes += from.panes;
    for (target, counts) in &from.by_target {
        let target_counts: &mut TargetCounts = into.by_target.entry(target.clone()).or_default();
        add(&mut target_counts.counts, &counts.counts);
        target_counts.windows += counts.windows;
        target_counts.panes += counts.panes;
    }
}

fn add(into: &mut StateTally, from: &StateTally) {
    for (state, n) in &from.0 {
        *into.0.entry(*state).or_default() += n;
    }
}
