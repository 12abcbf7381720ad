//! Compares the fleet with the stored records and lists the writes that bring the store up to date.

use std::collections::HashMap;

use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey, RuntimeChange};
use agtmux_core::ids::TargetName;
use jiff::Timestamp;

use crate::store::{PaneRecord, StoreChange};

/// Remembers the stored record of each pane, so that an unchanged pane causes no write.
#[derive(Debug, Default)]
pub(crate) struct FleetDiff {
    stored: HashMap<PaneKey, PaneRecord>,
}

impl FleetDiff {
    /// The writes that store a change of the fleet. The writes that end runtimes come first, because a pane must have
    /// at most one current runtime even in the middle of a batch.
    pub(crate) fn changes(&mut self, fleet: &Fleet, delta: &FleetDelta, now: Timestamp) -> Vec<StoreChange> {
        let ended = delta.runtime_changes.iter().filter_map(|life| match life {
            RuntimeChange::Ended { runtime, .. } => Some(StoreChange::EndRuntime { id: runtime.clone(), at: now }),
            _ => None,
        });
        let mut changes: Vec<StoreChange> = ended.collect();
        for key in &delta.servers {
            changes.push(match fleet.server(key) {
                Some(server) => StoreChange::PutServer {
                    key: key.clone(),
                    generation: server.generation,
                    healthy: server.outage.is_none(),
                    at: now,
                },
                None => StoreChange::DropServer { key: key.clone(), at: now },
            });
        }
        for key in delta.removed.iter().chain(&delta.changed) {
            changes.extend(self.pane_change(fleet, key));
        }
        if delta.targets_changed || !delta.servers.is_empty() {
            let healthy = !fleet.target_outages().any(|(target, _)| target.is_local());
            changes.push(StoreChange::PutTarget { target: TargetName::local(), healthy, at: now });
        }
        changes
    }

    /// The writes that store the whole fleet. Used after a write has failed, because `stored` may then differ from the
    /// database.
    pub(crate) fn all_changes(&mut self, fleet: &Fleet, now: Timestamp) -> Vec<StoreChange> {
        self.stored.clear();
        let mut delta = FleetDelta { targets_changed: true, ..FleetDelta::default() };
        for (key, server) in fleet.servers() {
            delta.servers.insert(key.clone());
            delta.changed.extend(server.panes.keys().map(|pane| PaneKey { server: key.clone(), pane: *pane }));
        }
        self.changes(fleet, &delta, now)
    }

    fn pane_change(&mut self, fleet: &Fleet, key: &PaneKey) -> Option<StoreChange> {
        let Some((server, pane)) = fleet.server(&key.server).and_then(|s| Some((s, s.panes.get(&key.pane)?))) else {
            self.stored.remove(key);
            return Some(StoreChange::DropPane(key.clone()));
        };
        let record = PaneRecord::of(key, server.generation, pane);
        if self.stored.get(key) == Some(&record) {
            return None;
        }
        self.stored.insert(key.clone(), record.clone());
        Some(StoreChange::PutPane(Box::new(record)))
    }
}
