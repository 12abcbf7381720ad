use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agtmux_core::ids::PaneId;
use agtmux_core::rollup::StateCounts;
use agtmux_core::target::TargetKind;
use jiff::Timestamp;

use super::{FleetItems, ItemFilter};
use crate::SCHEMA_VERSION;
use crate::wire::{
    ListResponse, ListSummary, PaneItem, SessionGrouping, SessionIdentity, SessionItem, StateTally, TargetCounts,
    TargetItem, TargetList, TargetStatus, WindowItem,
};

impl FleetItems {
    /// The response of `/v1/panes`.
    pub fn list_panes(&self, filter: &ItemFilter, now: Timestamp) -> ListResponse<Arc<PaneItem>> {
        let items: Vec<_> = self.panes.values().filter(|pane| filter.accepts_pane(pane)).cloned().collect();
        let summary = summary(items.iter().map(Arc::as_ref));
        self.list(filter, summary, items, now)
    }

    /// The response of `/v1/windows`.
    pub fn list_windows(&self, filter: &ItemFilter, now: Timestamp) -> ListResponse<Arc<WindowItem>> {
        let items: Vec<_> = self.windows.values().filter(|window| filter.accepts_window(window)).cloned().collect();
        let shown: BTreeSet<_> =
            items.iter().map(|w| (&w.identity.target, &w.identity.server, w.identity.window_id)).collect();
        let in_window =
            |pane: &&PaneItem| shown.contains(&(&pane.identity.target, &pane.identity.server, pane.identity.window_id));
        let summary = summary(self.panes.values().map(Arc::as_ref).filter(in_window));
        self.list(filter, summary, items, now)
    }

    /// The response of `/v1/sessions`.
    pub fn list_sessions(&self, filter: &ItemFilter, now: Timestamp) -> ListResponse<Arc<SessionItem>> {
        let items: Vec<_> = self.sessions.values().filter(|s| filter.accepts_session(s)).cloned().collect();
        let shown: BTreeSet<&SessionIdentity> = items.iter().map(|session| &session.identity).collect();
        let in_session = |pane: &&PaneItem| shown.contains(&pane.identity.session());
        let summary = summary(self.panes.values().map(Arc::as_ref).filter(in_session));
        let items = match filter.group_by {
            SessionGrouping::TargetSession => items,
            SessionGrouping::SessionName => merge_by_name(&items),
        };
        self.list(filter, summary, items, now)
    }

    /// The panes that the filter accepts. The panes that most urgently need a person come first.
    pub fn panes_by_attention(&self, filter: &ItemFilter) -> Vec<Arc<PaneItem>> {
        let mut panes: Vec<_> = self.panes.values().filter(|pane| filter.accepts_pane(pane)).cloned().collect();
        panes.sort_by(|a, b| a.attention_order().cmp(&b.attention_order()));
        panes
    }

    /// The response of `/v1/targets`. This machine comes first.
    pub fn list_targets(&self, filter: &ItemFilter) -> TargetList {
        let counts = self.count_panes();
        let targets = self.targets.values().filter(|target| filter.accepts_target(target));
        let mut items: Vec<TargetItem> = targets.map(|target| target_item(target, &counts)).collect();
        items.sort_by_key(|item| item.status.kind != TargetKind::Local);
        TargetList { schema_version: SCHEMA_VERSION, items }
    }

    pub fn target(&self, name: &str) -> Option<TargetItem> {
        Some(target_item(self.targets.get(name)?, &self.count_panes()))
    }

    /// For each target, the number of its panes and the number of its agents. A pane that several sessions show is
    /// counted once.
    pub fn count_panes(&self) -> BTreeMap<&str, (u32, u32)> {
        let mut counted = BTreeSet::new();
        let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for pane in self.panes.values() {
            let identity = &pane.identity;
            if counted.insert((&identity.target, &identity.server, identity.pane_id)) {
                let (panes, agents) = counts.entry(&identity.target).or_default();
                *panes += 1;
                *agents += u32::from(pane.agent_type.is_some());
            }
        }
        counts
    }

    fn list<T>(
        &self,
        filter: &ItemFilter,
        summary: ListSummary,
        items: Vec<Arc<T>>,
        now: Timestamp,
    ) -> ListResponse<Arc<T>> {
        let target_errors = filter.target_errors(&self.target_errors);
        ListResponse {
            schema_version: SCHEMA_VERSION,
            generated_at: now,
            filters: filter.given.clone(),
            summary,
            partial: !target_errors.is_empty(),
            target_errors,
            items,
        }
    }
}

fn target_item(target: &TargetStatus, counts: &BTreeMap<&str, (u32, u32)>) -> TargetItem {
    let (panes, agents) = counts.get(target.name.as_str()).copied().unwrap_or_default();
    TargetItem { status: target.clone(), panes, agents }
}

/// Counts the agents in these panes. An agent counts once, even if several sessions show its pane.
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
