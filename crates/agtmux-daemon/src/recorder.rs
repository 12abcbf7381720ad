//! From what changed in the fleet to what has to be written.

use std::collections::HashMap;

use agtmux_core::fleet::{Delta, Fleet, Life, PaneKey};
use agtmux_core::ids::TargetName;
use jiff::Timestamp;

use crate::store::{Change, PaneRecord};

/// Remembers what is stored, so that a change that is not stored costs no write.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    stored: HashMap<PaneKey, PaneRecord>,
}

impl Recorder {
    /// Endings come first: a pane has at most one current runtime, also halfway through a batch.
    pub(crate) fn changes(&mut self, fleet: &Fleet, delta: &Delta, now: Timestamp) -> Vec<Change> {
        let ended = delta.lives.iter().filter_map(|life| match life {
            Life::Ended { runtime, .. } => Some(Change::EndRuntime { id: runtime.clone(), at: now }),
            _ => None,
        });
        let mut changes: Vec<Change> = ended.collect();
        for key in &delta.servers {
            changes.push(match fleet.server(key) {
                Some(server) => Change::PutServer {
                    key: key.clone(),
                    generation: server.generation,
                    healthy: server.outage.is_none(),
                    at: now,
                },
                None => Change::DropServer(key.clone()),
            });
        }
        for key in delta.removed.iter().chain(&delta.changed) {
            changes.extend(self.pane(fleet, key));
        }
        if delta.targets_changed || !delta.servers.is_empty() {
            let healthy = !fleet.target_outages().any(|(target, _)| target.is_local());
            changes.push(Change::PutTarget { target: TargetName::local(), healthy, at: now });
        }
        changes
    }

    /// Everything again, after writes have failed.
    pub(crate) fn all(&mut self, fleet: &Fleet, now: Timestamp) -> Vec<Change> {
        self.stored.clear();
        let mut delta = Delta { targets_changed: true, ..Delta::default() };
        for (key, server) in fleet.servers() {
            delta.servers.insert(key.clone());
            delta.changed.extend(server.panes.keys().map(|pane| PaneKey { server: key.clone(), pane: *pane }));
        }
        self.changes(fleet, &delta, now)
    }

    fn pane(&mut self, fleet: &Fleet, key: &PaneKey) -> Option<Change> {
        let Some((server, pane)) = fleet.server(&key.server).and_then(|s| Some((s, s.panes.get(&key.pane)?))) else {
            self.stored.remove(key);
            return Some(Change::DropPane(key.clone()));
        };
        let record = PaneRecord::of(key, server.generation, pane);
        if self.stored.get(key) == Some(&record) {
            return None;
        }
        self.stored.insert(key.clone(), record.clone());
        Some(Change::PutPane(Box::new(record)))
    }
}
