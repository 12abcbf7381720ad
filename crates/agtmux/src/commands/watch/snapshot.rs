//! The current panes, windows or sessions.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{
    ListResponse, ListScope, ListSummary, PaneItem, SessionItem, TargetError, WatchEvent, WatchEventKind, WatchItem,
    WindowItem,
};
use agtmux_client::{ClientError, parse};
use bytes::Bytes;
use jiff::Timestamp;

use super::WatchPlan;
use super::since::ChangedSince;
use crate::error::CliError;
use crate::render::{self, TextTable};

#[derive(Debug)]
pub(super) struct ListSnapshot {
    pub(super) summary: ListSummary,
    pub(super) target_errors: Vec<TargetError>,
    generated_at: Timestamp,
    items: SnapshotItems,
}

#[derive(Debug)]
enum SnapshotItems {
    Panes(Vec<PaneItem>),
    Windows(Vec<WindowItem>),
    Sessions(Vec<SessionItem>),
}

impl ListSnapshot {
    /// Reads from the daemon and starts it if it is not running.
    pub(super) async fn fetch(plan: &WatchPlan) -> Result<Self, CliError> {
        let bytes = plan.daemon.get_bytes(&path(plan), &plan.query).await?;
        Ok(Self::read(plan.scope, &bytes)?.retain_changed(&ChangedSince::load(plan).await?))
    }

    /// Reads from the running daemon and never starts one. The event stream starts the daemon if necessary.
    pub(super) async fn refetch(plan: &WatchPlan) -> Result<Self, CliError> {
        let bytes: Result<Bytes, ClientError> = plan.daemon.api.get_bytes(&path(plan), &plan.query).await;
        let snapshot = Self::read(plan.scope, &bytes?)?;
        if plan.since.is_none() { Ok(snapshot) } else { Ok(snapshot.retain_changed(&ChangedSince::load(plan).await?)) }
    }

    fn read(scope: ListScope, bytes: &[u8]) -> Result<Self, CliError> {
        Ok(match scope {
            ListScope::Panes => Self::from_listing(parse(bytes)?, SnapshotItems::Panes),
            ListScope::Windows => Self::from_listing(parse(bytes)?, SnapshotItems::Windows),
            ListScope::Sessions => Self::from_listing(parse(bytes)?, SnapshotItems::Sessions),
        })
    }

    fn from_listing<T>(listing: ListResponse<T>, items: impl FnOnce(Vec<T>) -> SnapshotItems) -> Self {
        Self {
            summary: listing.summary,
            target_errors: listing.target_errors,
            generated_at: listing.generated_at,
            items: items(listing.items),
        }
    }

    fn retain_changed(mut self, changed: &ChangedSince) -> Self {
        match &mut self.items {
            SnapshotItems::Panes(items) => items.retain(|item| changed.pane(item)),
            SnapshotItems::Windows(items) => items.retain(|item| changed.window(&item.identity)),
            SnapshotItems::Sessions(items) => items.retain(|item| changed.session(&item.identity)),
        }
        self
    }

    pub(super) fn table(&self, now: Timestamp) -> TextTable {
        match &self.items {
            SnapshotItems::Panes(items) => render::panes(items, now),
            SnapshotItems::Windows(items) => render::windows(items, true),
            SnapshotItems::Sessions(items) => render::sessions(items, true),
        }
    }

    /// The same events that the event stream begins with.
    pub(super) fn into_events(self, seq: u64) -> Vec<WatchEvent> {
        let at = self.generated_at;
        let event = |scope, item| WatchEvent {
            schema_version: SCHEMA_VERSION,
            seq,
            at,
            kind: WatchEventKind::Snapshot,
            scope,
            item: Some(item),
            task: None,
        };
        match self.items {
            SnapshotItems::Panes(items) => {
                items.into_iter().map(|item| event(ListScope::Panes, WatchItem::Pane(Box::new(item)))).collect()
            }
            SnapshotItems::Windows(items) => {
                items.into_iter().map(|item| event(ListScope::Windows, WatchItem::Window(item))).collect()
            }
            SnapshotItems::Sessions(items) => {
                items.into_iter().map(|item| event(ListScope::Sessions, WatchItem::Session(item))).collect()
            }
        }
    }
}

fn path(plan: &WatchPlan) -> String {
    format!("/v1/{}", plan.scope)
}
