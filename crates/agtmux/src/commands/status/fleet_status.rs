use std::borrow::Borrow;

use agtmux_api::wire::{ListResponse, ListSummary, PaneItem, TargetError};
use agtmux_core::state::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::render;

/// The parts of the response of `/v1/panes` that `status` needs: all except the panes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StatusSummary {
    schema_version: u32,
    generated_at: Timestamp,
    pub(super) summary: ListSummary,
    partial: bool,
    target_errors: Vec<TargetError>,
}

/// What a status bar can show.
#[derive(Debug)]
pub(super) struct FleetStatus {
    /// None if no daemon runs.
    pub(super) summary: Option<StatusSummary>,
    pub(super) unseen: usize,
    /// The agent that has waited for longest.
    pub(super) next: Option<PaneItem>,
}

impl FleetStatus {
    pub(super) fn off() -> Self {
        Self { summary: None, unseen: 0, next: None }
    }

    pub(super) fn of_summary(summary: StatusSummary) -> Self {
        Self { summary: Some(summary), unseen: 0, next: None }
    }

    pub(super) fn of_list(list: ListResponse<impl Borrow<PaneItem>>) -> Self {
        let ListResponse { schema_version, generated_at, summary, partial, target_errors, items, .. } = list;
        let summary = StatusSummary { schema_version, generated_at, summary, partial, target_errors };
        // A pane in several sessions is listed several times.
        let mut seen = std::collections::BTreeSet::new();
        let items = || items.iter().map(Borrow::<PaneItem>::borrow);
        let unseen = items().filter(|item| item.unseen && seen.insert(item.runtime_id.as_deref())).count();
        let waiting = items().filter(|item| item.state.is_some_and(State::is_waiting));
        let next = waiting.min_by(|a, b| a.attention_order().cmp(&b.attention_order())).cloned();
        Self { summary: Some(summary), unseen, next }
    }

    pub(super) fn one_line(&self, colour: bool) -> String {
        let Some(status) = &self.summary else { return "off".to_owned() };
        let counts = render::counts(&status.summary.by_state, colour);
        let counts = if counts.is_empty() { "no agents".to_owned() } else { counts };
        // Mark the counts when a target could not be read.
        if status.partial { counts + " · incomplete" } else { counts }
    }

    pub(super) fn count(&self, state: State) -> u32 {
        self.summary.as_ref().map_or(0, |status| status.summary.by_state.of(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_client::parse;

    #[test]
    fn items_are_ignored_and_partial_counts_are_marked() {
        let json = br#"{"schema_version":1,"generated_at":"2026-11-15T09:00:00Z","filters":{"x":1},
            "summary":{"by_state":{"running":1,"idle":0},"by_agent":{},"by_target":{}},
            "partial":true,"target_errors":[],"items":[{"anything":[]}]}"#;
        let status = FleetStatus::of_summary(parse(json).expect("readable"));
        assert_eq!(status.one_line(false), "1 running · incomplete");
        assert_eq!(FleetStatus::off().one_line(true), "off");
    }
}
