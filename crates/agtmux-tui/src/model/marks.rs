//! What the person has noted about agents: pinned ones and snoozed ones.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::wire::PaneItem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::agents::AgentKey;

/// The notes, by the name of the agent's key.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentMarks {
    pinned: BTreeSet<String>,
    snoozed: BTreeMap<String, Snooze>,
}

/// How long an agent is put last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Snooze {
    /// Until this time. None: until the agent changes.
    until: Option<Timestamp>,
    /// The version of the agent's state when it was snoozed.
    state_version: Option<u64>,
}

impl AgentMarks {
    pub fn is_pinned(&self, key: &AgentKey) -> bool {
        !self.pinned.is_empty() && self.pinned.contains(&key.name())
    }

    /// Pins the agent, or no longer. Returns whether it is pinned now.
    pub fn toggle_pin(&mut self, key: &AgentKey) -> bool {
        let name = key.name();
        !self.pinned.remove(&name) && self.pinned.insert(name)
    }

    pub fn is_snoozed(&self, key: &AgentKey, item: &PaneItem, now: Timestamp) -> bool {
        !self.snoozed.is_empty() && self.snoozed.get(&key.name()).is_some_and(|snooze| snooze.holds(item, now))
    }

    /// Puts the agent last until this time, or until it changes.
    pub fn snooze(&mut self, key: &AgentKey, item: &PaneItem, until: Option<Timestamp>) {
        self.snoozed.insert(key.name(), Snooze { until, state_version: item.state_version });
    }

    /// Ends a snooze. Returns false if there was none.
    pub fn wake(&mut self, key: &AgentKey) -> bool {
        self.snoozed.remove(&key.name()).is_some()
    }

    /// When the next snooze ends.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        self.snoozed.values().filter_map(|snooze| snooze.until).filter(|until| *until > now).min()
    }

    /// The notes about these agents only.
    pub fn only_about(&self, agents: &BTreeSet<String>) -> Self {
        let pinned = self.pinned.intersection(agents).cloned().collect();
        let snoozed = self.snoozed.iter().filter(|(name, _)| agents.contains(*name));
        Self { pinned, snoozed: snoozed.map(|(name, snooze)| (name.clone(), snooze.clone())).collect() }
    }
}

impl Snooze {
    fn holds(&self, item: &PaneItem, now: Timestamp) -> bool {
        match self.until {
            Some(until) => now < until,
            None => self.state_version == item.state_version,
        }
    }
}
