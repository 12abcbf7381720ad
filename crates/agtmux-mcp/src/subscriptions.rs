//! Tells a client that a resource has changed.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use agtmux_api::wire::{ListQuery, ListScope, WatchEvent, WatchEventKind, WatchItem};
use agtmux_client::{DaemonClient, StreamSignal};
use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::Peer;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::resources::ResourceName;

/// Changes within this time are one notification.
const QUIET: Duration = Duration::from_millis(250);
/// The most subscriptions of one client. Each has a connection to the daemon.
const MAX_SUBSCRIPTIONS: usize = 50;

/// The subscriptions of one client, by URI.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns false if there are too many subscriptions.
    pub(crate) fn add(&self, uri: String, name: ResourceName, daemon: DaemonClient, peer: Peer<RoleServer>) -> bool {
        let mut running = self.running();
        running.retain(|_, task| !task.is_finished());
        if running.len() >= MAX_SUBSCRIPTIONS && !running.contains_key(&uri) {
            return false;
        }
        let task = tokio::spawn(notify(uri.clone(), name, daemon, peer));
        if let Some(earlier) = running.insert(uri, task.abort_handle()) {
            earlier.abort();
        }
        true
    }

    pub(crate) fn remove(&self, uri: &str) {
        if let Some(task) = self.running().remove(uri) {
            task.abort();
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.running().values().for_each(AbortHandle::abort);
    }
}

async fn notify(uri: String, name: ResourceName, daemon: DaemonClient, peer: Peer<RoleServer>) {
    let mut signals = daemon.watch(ListQuery { scope: Some(ListScope::Panes), ..ListQuery::default() });
    let mut pending = false;
    loop {
        let quiet = async {
            match pending {
                true => sleep(QUIET).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = signals.next() => match signal {
                Ok(StreamSignal::Event(event)) => pending |= concerns(&event, &name),
                Ok(StreamSignal::CaughtUp | StreamSignal::Disconnected(_)) => {}
                Err(_) => return,
            },
            () = quiet => {
                pending = false;
                let updated = ResourceUpdatedNotificationParam::new(uri.clone());
                if peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Whether the event changes the resource. The snapshot at the start of the stream changes nothing.
fn concerns(event: &WatchEvent, name: &ResourceName) -> bool {
    let is_change = matches!(event.kind, WatchEventKind::Upsert | WatchEventKind::Remove);
    match name {
        ResourceName::Agents => is_change,
        ResourceName::Tasks => event.kind == WatchEventKind::Task,
        ResourceName::Output(id) => {
            let Some(WatchItem::Pane(pane)) = &event.item else { return false };
            is_change && pane.runtime_id.as_ref() == Some(id)
        }
    }
}
