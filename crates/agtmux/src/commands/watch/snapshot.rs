//! What is there now, in whichever scope.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::client::ClientError;
use agtmux_api::wire::{
    EventKind, Item, Listing, PaneItem, Scope, SessionItem, Summary, TargetError, WatchEvent, WindowItem,
};
use bytes::Bytes;
use jiff::Timestamp;

use super::Plan;
use super::since::Changed;
use crate::connect::parse;
use crate::error::CliError;
use crate::render::{self, Table};

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) summary: Summary,
    pub(super) target_errors: Vec<TargetError>,
    generated_at: Timestamp,
    items: Items,
}

#[derive(Debug)]
enum Items {
    Panes(Vec<PaneItem>),
    Windows(Vec<WindowItem>),
    Sessions(Vec<SessionItem>),
}

impl Snapshot {
    /// From a daemon that is started when there is none.
    pub(super) async fn take(plan: &Plan) -> Result<Self, CliError> {
        let bytes = plan.daemon.bytes(&path(plan), &plan.query).await?;
        Ok(Self::read(plan.scope, &bytes)?.only(&Changed::look(plan).await?))
    }

    /// From the daemon that runs; it is for the event stream to start another.
    pub(super) async fn retake(plan: &Plan) -> Result<Self, CliError> {
        let bytes: Result<Bytes, ClientError> = plan.daemon.client.get_bytes(&path(plan), &plan.query).await;
        let snapshot = Self::read(plan.scope, &bytes?)?;
        if plan.since.is_none() { Ok(snapshot) } else { Ok(snapshot.only(&Changed::look(plan).await?)) }
    }

    fn read(scope: Scope, bytes: &[u8]) -> Result<Self, CliError> {
        Ok(match scope {
            Scope::Panes => Self::of(parse(bytes)?, Items::Panes),
            Scope::Windows => Self::of(parse(bytes)?, Items::Windows),
            Scope::Sessions => Self::of(parse(bytes)?, Items::Sessions),
        })
    }

    fn of<T>(listing: Listing<T>, items: impl FnOnce(Vec<T>) -> Items) -> Self {
        Self {
            summary: listing.summary,
            target_errors: listing.target_errors,
            generated_at: listing.generated_at,
            items: items(listing.items),
        }
    }

    fn only(mut self, changed: &Changed) -> Self {
        match &mut self.items {
            Items::Panes(items) => items.retain(|item| changed.pane(item)),
            Items::Windows(items) => items.retain(|item| changed.window(&item.identity)),
            Items::Sessions(items) => items.retain(|item| changed.session(&item.identity)),
        }
        self
    }

    pub(super) fn table(&self, now: Timestamp) -> Table {
        match &self.items {
            Items::Panes(items) => render::panes(items, now),
            Items::Windows(items) => render::windows(items, true),
            Items::Sessions(items) => render::sessions(items, true),
        }
    }

    /// The same as the event stream would begin with.
    pub(super) fn into_events(self, seq: u64) -> Vec<WatchEvent> {
        let at = self.generated_at;
        let event = |scope, item| WatchEvent {
            schema_version: SCHEMA_VERSION,
            seq,
            at,
            kind: EventKind::Snapshot,
            scope,
            item: Some(item),
            task: None,
        };
        match self.items {
            Items::Panes(items) => {
                items.into_iter().map(|item| event(Scope::Panes, Item::Pane(Box::new(item)))).collect()
            }
            Items::Windows(items) => items.into_iter().map(|item| event(Scope::Windows, Item::Window(item))).collect(),
            Items::Sessions(items) => {
                items.into_iter().map(|item| event(Scope::Sessions, Item::Session(item))).collect()
            }
        }
    }
}

fn path(plan: &Plan) -> String {
    format!("/v1/{}", plan.scope)
}
