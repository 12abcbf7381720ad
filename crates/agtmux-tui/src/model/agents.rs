//! The agents of the fleet as rows: each agent once, also after it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agtmux_api::fleet_items::{FleetItems, ItemFilter};
use agtmux_api::wire::{PaneIdentity, PaneItem};
use agtmux_core::dialog::Dialog;
use agtmux_core::ids::{AgentType, TargetName};
use agtmux_core::refs::PaneRef;
use agtmux_core::state::{Confidence, ReasonCode, State};
use jiff::Timestamp;

use super::AgentMarks;

/// Identifies an agent. A pane whose agent has no runtime id stands for its agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentKey {
    Runtime(String),
    Pane(PaneIdentity),
}

impl AgentKey {
    /// The name of the key in the file that the interface remembers.
    pub fn name(&self) -> String {
        match self {
            Self::Runtime(id) => id.clone(),
            Self::Pane(pane) => {
                format!("{}/{}/{}/{}", pane.target, pane.server, pane.session_name, pane.pane_id)
            }
        }
    }
}

/// One agent or task of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub key: AgentKey,
    pub item: Arc<PaneItem>,
    /// The agent has ended, and its pane is still there. `item` is the last one that was known.
    pub has_ended: bool,
    /// The person keeps the agent at the top.
    pub is_pinned: bool,
    /// The person has put the agent last for now.
    pub is_snoozed: bool,
}

impl AgentRow {
    fn new(item: Arc<PaneItem>, has_ended: bool) -> Self {
        let key = match &item.runtime_id {
            Some(id) => AgentKey::Runtime(id.clone()),
            None => AgentKey::Pane(item.identity.clone()),
        };
        Self { key, item, has_ended, is_pinned: false, is_snoozed: false }
    }

    fn marked(self, marks: &AgentMarks, now: Timestamp) -> Self {
        let is_pinned = marks.is_pinned(&self.key);
        let is_snoozed = !self.has_ended && marks.is_snoozed(&self.key, &self.item, now);
        Self { is_pinned, is_snoozed, ..self }
    }

    /// Whether the agent waits for the person. An agent that the person has put last does not count.
    pub fn is_waiting(&self) -> bool {
        !self.is_snoozed && self.asks()
    }

    /// Whether the agent asks something.
    pub fn asks(&self) -> bool {
        !self.has_ended && self.item.state.is_some_and(State::is_waiting)
    }

    /// The dialog that is open, if any.
    pub fn dialog(&self) -> Option<&Dialog> {
        self.item.dialog.as_ref().filter(|_| !self.has_ended)
    }

    pub fn is_task(&self) -> bool {
        self.item.agent_type.as_ref().is_some_and(AgentType::is_task)
    }

    /// Whether a reader should doubt the state: it is a weak guess, or its host does not answer.
    pub fn is_doubtful(&self) -> bool {
        !self.has_ended && (self.item.confidence == Some(Confidence::Low) || self.is_unreachable())
    }

    pub fn is_unreachable(&self) -> bool {
        self.item.reason_code == Some(ReasonCode::TargetUnreachable)
    }

    /// The reference of this agent in requests. It names exactly this agent, or the pane in which it ended.
    pub fn reference(&self) -> String {
        match (&self.key, self.has_ended) {
            (AgentKey::Runtime(id), false) => format!("runtime:{id}"),
            _ => self.pane_reference(),
        }
    }

    fn pane_reference(&self) -> String {
        let id = &self.item.identity;
        let pane = PaneRef::Path {
            target: id.target.clone(),
            server: Some(id.server.clone()),
            session: id.session_name.clone(),
            window: id.window_id,
            pane: id.pane_id,
        };
        pane.to_string()
    }

    pub fn agent_type(&self) -> &str {
        self.item.agent_type.as_ref().map_or("agent", |agent| agent.as_str())
    }

    /// The place as tmux users write it, with the host of a remote agent.
    pub fn place(&self) -> String {
        let item = &self.item;
        format!("{}:{}.{}", self.session(), item.window_index, item.pane_index)
    }

    /// The session, with the host of a remote one.
    pub fn session(&self) -> String {
        let id = &self.item.identity;
        match id.target == TargetName::LOCAL {
            true => id.session_name.clone(),
            false => format!("{}/{}", id.target, id.session_name),
        }
    }
}

/// Remembers the agents, so that one that ends stays listed while its pane is there.
#[derive(Debug, Default)]
pub struct KnownAgents {
    live: BTreeMap<AgentKey, Arc<PaneItem>>,
    ended: Vec<Arc<PaneItem>>,
}

impl KnownAgents {
    /// Compares with the fleet and returns all rows in attention order. Ended agents come last.
    pub fn update(&mut self, fleet: &FleetItems, marks: &AgentMarks, now: Timestamp) -> Vec<AgentRow> {
        let mut seen = BTreeSet::new();
        let panes = fleet.panes_by_attention(&ItemFilter::default()).into_iter();
        let rows: Vec<AgentRow> =
            panes.map(|item| AgentRow::new(item, false)).filter(|row| seen.insert(row.key.clone())).collect();
        let gone = std::mem::take(&mut self.live).into_iter().filter(|(key, _)| !seen.contains(key));
        self.ended.extend(gone.map(|(_, item)| item));
        let is_free = |item: &Arc<PaneItem>| fleet.panes.get(&item.identity).is_some_and(|pane| pane.state.is_none());
        self.ended.retain(is_free);
        self.live = rows.iter().map(|row| (row.key.clone(), Arc::clone(&row.item))).collect();
        let ended = self.ended.iter().map(|item| AgentRow::new(Arc::clone(item), true));
        let mut rows: Vec<AgentRow> = rows.into_iter().chain(ended).map(|row| row.marked(marks, now)).collect();
        rows.sort_by_key(|row| (!row.is_pinned, row.is_snoozed));
        rows
    }
}
