//! The watched hosts as clients see them. For each remote host, a supervisor in the daemon reports the status. This
//! machine is `degraded` while one of its tmux servers cannot be read.

use std::sync::Arc;

use agtmux_api::wire::{EvidenceKind, TargetStatus, WatchEvent, WatchEventKind, WatchItem};
use agtmux_core::ids::TargetName;
use agtmux_core::target::{TargetHealth, TargetKind};
use jiff::Timestamp;

use super::FleetView;

/// A change of a target's status.
#[derive(Debug)]
pub(crate) enum TargetChange {
    Put(Box<TargetStatus>),
    Remove(TargetName),
}

impl FleetView {
    /// Applies the changes and updates the health of this machine. Returns the events to publish.
    pub(crate) fn apply_targets(&mut self, changes: Vec<TargetChange>, now: Timestamp) -> Vec<WatchEvent> {
        let local = self.changed_local_status(now).map(|status| TargetChange::Put(Box::new(status)));
        changes.into_iter().chain(local).filter_map(|change| self.apply_target(change)).collect()
    }

    /// Returns an event if the target has changed.
    fn apply_target(&mut self, change: TargetChange) -> Option<WatchEvent> {
        let targets = &mut self.fleet.targets;
        let (kind, target) = match change {
            TargetChange::Put(status) => {
                let status: Arc<TargetStatus> = status.into();
                let before = targets.insert(status.name.clone(), status.clone());
                (WatchEventKind::Upsert, Some(status).filter(|status| before.as_ref() != Some(status)))
            }
            TargetChange::Remove(name) => (WatchEventKind::Remove, targets.remove(name.as_str())),
        };
        Some(WatchEvent::of_item(kind, WatchItem::from(&*target?), 0, Timestamp::UNIX_EPOCH))
    }

    /// The status of this machine, if it has changed.
    fn changed_local_status(&self, now: Timestamp) -> Option<TargetStatus> {
        let error = self.fleet.target_errors.iter().find(|error| error.target == TargetName::LOCAL);
        let health = if error.is_some() { TargetHealth::Degraded } else { TargetHealth::Ok };
        let (message, hint) = (error.map(|error| &error.message), error.map(|error| &error.hint));
        let before = self.fleet.targets.get(TargetName::LOCAL);
        let is_same = |before: &Arc<TargetStatus>| {
            (before.health, before.message.as_ref(), before.hint.as_ref()) == (health, message, hint)
        };
        if before.is_some_and(is_same) {
            return None;
        }
        let same_health = before.filter(|before| before.health == health);
        Some(TargetStatus {
            name: TargetName::LOCAL.into(),
            kind: TargetKind::Local,
            ssh_target: None,
            health,
            evidence: EvidenceKind::Native,
            agtmux_version: Some(agtmux_api::VERSION.into()),
            since: same_health.map_or(now, |before| before.since),
            fault: None,
            message: message.cloned(),
            hint: hint.cloned(),
            clock_ahead_ms: None,
        })
    }
}
