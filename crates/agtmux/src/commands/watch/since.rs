//! The `--since` filter. Each pane has the time of its last change. A window or a session counts as changed if one of
//! its panes has changed. A target counts as changed if it was connected or disconnected.

use std::collections::BTreeSet;
use std::sync::Arc;

use agtmux_api::wire::{
    ListQuery, ListResponse, ListScope, PaneIdentity, PaneItem, SessionIdentity, TargetStatus, WatchItem,
    WindowIdentity,
};
use jiff::{SignedDuration, Timestamp};

use super::WatchPlan;
use crate::error::CliError;

/// Parses a time, or a duration before now.
pub(crate) fn parse_since(given: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = given.parse::<Timestamp>() {
        return Ok(moment);
    }
    let ago = given.parse::<SignedDuration>().ok().filter(|ago| !ago.is_negative());
    ago.and_then(|ago| Timestamp::now().checked_sub(ago).ok()).ok_or_else(|| {
        "expected a time with its zone, such as 2026-11-15T09:00:00Z, or a duration before now, such as 10m".to_owned()
    })
}

#[derive(Debug, Default)]
pub(super) struct ChangedSince {
    since: Option<Timestamp>,
    windows: BTreeSet<WindowIdentity>,
    sessions: BTreeSet<SessionIdentity>,
}

impl ChangedSince {
    /// Requests the list of panes, because the panes show which windows and sessions have changed. For the scopes panes
    /// and targets, requests nothing, because each item of these scopes has the time of its last change.
    pub(super) async fn load(plan: &WatchPlan) -> Result<Self, CliError> {
        if plan.since.is_none() || matches!(plan.scope, ListScope::Panes | ListScope::Targets) {
            return Ok(Self { since: plan.since, ..Self::default() });
        }
        let every_pane = ListQuery { all: true, ..ListQuery::default() };
        let list: ListResponse<Arc<PaneItem>> = plan.daemon.get("/v1/panes", &every_pane).await?;
        Ok(Self::new(plan.since, list.items.iter()))
    }

    pub(super) fn new<'a>(since: Option<Timestamp>, panes: impl Iterator<Item = &'a Arc<PaneItem>>) -> Self {
        let Some(at) = since else { return Self::default() };
        let changed: Vec<&PaneIdentity> =
            panes.filter(|pane| pane.updated_at >= at).map(|pane| &pane.identity).collect();
        Self {
            since,
            windows: changed.iter().map(|pane| pane.window()).collect(),
            sessions: changed.iter().map(|pane| pane.session()).collect(),
        }
    }

    pub(super) fn pane(&self, item: &PaneItem) -> bool {
        self.since.is_none_or(|since| item.updated_at >= since)
    }

    pub(super) fn window(&self, id: &WindowIdentity) -> bool {
        self.since.is_none() || self.windows.contains(id)
    }

    pub(super) fn session(&self, id: &SessionIdentity) -> bool {
        self.since.is_none() || self.sessions.contains(id)
    }

    pub(super) fn target(&self, target: &TargetStatus) -> bool {
        self.since.is_none_or(|since| target.since >= since)
    }

    pub(super) fn item(&self, item: &WatchItem) -> bool {
        match item {
            WatchItem::Pane(pane) => self.pane(pane),
            WatchItem::Window(window) => self.window(&window.identity),
            WatchItem::Session(session) => self.session(&session.identity),
            WatchItem::Target(target) => self.target(target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_parsed() {
        assert_eq!(parse_since("1970-01-01T00:00:00Z"), Ok(Timestamp::UNIX_EPOCH));
        let ago = Timestamp::now().duration_since(parse_since("10m").expect("a duration"));
        assert!((599..=601).contains(&ago.as_secs()), "{ago:?}");
        assert!(parse_since("-10m").is_err());
        assert!(parse_since("2026-11-15").is_err());
        assert!(parse_since("99999999999h").is_err());
    }
}
