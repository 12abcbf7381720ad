//! The effects of one batch of inputs, before they are stored and published.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EventReceipt, TaskWatchEvent};
use agtmux_core::evidence::Source;
use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey};
use agtmux_core::ids::TargetName;
use agtmux_core::resolver::{ResolverInput, StateTransition};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::TaskEvent;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::tasks::TaskEventBatch;
use crate::observe::server_name;
use crate::store::{LoggedInput, StoreChange, StoreError};

/// The reply to a posted event.
type IngestResult = Result<EventReceipt, ApiError>;

pub(super) struct EngineStep {
    pub(super) now: Timestamp,
    /// The last sequence number that was assigned.
    pub(super) seq: u64,
    pub(super) delta: FleetDelta,
    pub(super) changes: Vec<StoreChange>,
    /// Runtimes whose state has changed.
    pub(super) changed_states: BTreeSet<RuntimeId>,
    /// Runtimes whose evidence has changed.
    pub(super) changed_evidence: BTreeSet<RuntimeId>,
    /// Keys of events that are not stored yet: event id and content hash.
    pub(super) dedupe_keys: BTreeMap<(RuntimeId, Source, String), (String, String)>,
    pub(super) receipts: Vec<(oneshot::Sender<IngestResult>, IngestResult)>,
    pub(super) flush_replies: Vec<oneshot::Sender<()>>,
    /// Task events, published once they are stored.
    pub(super) task_events: Vec<PendingTaskEvents>,
}

/// Task events with their sequence numbers, and the reply to send when they are stored.
pub(super) struct PendingTaskEvents {
    reply: oneshot::Sender<Option<Vec<TaskEvent>>>,
    server: String,
    events: Vec<TaskEvent>,
}

impl EngineStep {
    pub(super) fn new(now: Timestamp, seq: u64) -> Self {
        Self {
            now,
            seq,
            delta: FleetDelta::default(),
            changes: Vec::new(),
            changed_states: BTreeSet::new(),
            changed_evidence: BTreeSet::new(),
            dedupe_keys: BTreeMap::new(),
            receipts: Vec::new(),
            flush_replies: Vec::new(),
            task_events: Vec::new(),
        }
    }

    /// A pane may end up in two sets. That is harmless: readers look up the pane in the fleet.
    pub(super) fn merge(&mut self, from: FleetDelta) {
        let into = &mut self.delta;
        into.changed.extend(from.changed);
        into.removed.extend(from.removed);
        into.servers.extend(from.servers);
        into.windows.extend(from.windows);
        into.sessions.extend(from.sessions);
        into.runtime_changes.extend(from.runtime_changes);
        into.targets_changed |= from.targets_changed;
    }

    /// Inputs that only let time pass are not evidence: time passes on the hub, too.
    pub(super) fn note_changed_evidence(&mut self, input: &ResolverInput) {
        match input {
            ResolverInput::Started { runtime, .. }
            | ResolverInput::Observed { runtime, .. }
            | ResolverInput::Unrecognized { runtime, .. }
            | ResolverInput::AgentIdentified { runtime, .. }
            | ResolverInput::LedgerReplaced { runtime, .. }
            | ResolverInput::LedgerCleared { runtime } => {
                self.changed_evidence.insert(runtime.clone());
            }
            ResolverInput::Ended { .. }
            | ResolverInput::Suspended { .. }
            | ResolverInput::Reachable { .. }
            | ResolverInput::DemotionDue { .. }
            | ResolverInput::Reevaluate { .. } => {}
        }
    }

    /// Marks a pane as changed because its agent's state has changed.
    pub(super) fn mark_pane_changed(&mut self, fleet: &Fleet, key: &PaneKey) {
        self.delta.changed.insert(key.clone());
        if let Some(pane) = fleet.pane(key) {
            self.delta.windows.insert((key.server.clone(), pane.window));
            let sessions = pane.placements.iter().map(|placement| (key.server.clone(), placement.session));
            self.delta.sessions.extend(sessions);
        }
    }

    /// Assigns sequence numbers to task events.
    pub(super) fn add_task_events(&mut self, batch: TaskEventBatch, reply: oneshot::Sender<Option<Vec<TaskEvent>>>) {
        let TaskEventBatch { socket, mut events, changes } = batch;
        self.changes.extend(changes);
        for event in &mut events {
            self.seq += 1;
            event.seq = self.seq;
            let event = Box::new(event.clone());
            self.changes.push(StoreChange::PutTaskEvent { socket: socket.clone(), event });
        }
        let server = server_name(Path::new(&socket)).to_string();
        self.task_events.push(PendingTaskEvents { reply, server, events });
    }

    /// The task events as published to clients.
    pub(super) fn published_task_events(&self) -> Vec<TaskWatchEvent> {
        let watch_event = |pending: &PendingTaskEvents, event: &TaskEvent| TaskWatchEvent {
            target: TargetName::LOCAL.into(),
            server: pending.server.clone(),
            event: event.clone(),
        };
        self.task_events
            .iter()
            .flat_map(|pending| pending.events.iter().map(move |event| watch_event(pending, event)))
            .collect()
    }

    /// The body of an event that arrived in this step.
    pub(super) fn body_of(&self, event_id: &str) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            StoreChange::PutEvent { event, body } if event.order.event_id == event_id => body.as_deref(),
            _ => None,
        })
    }

    /// Transitions and published events share one sequence.
    pub(super) fn log_input(
        &mut self,
        input_seq: u64,
        event_id: Option<String>,
        input: ResolverInput,
        transitions: Vec<StateTransition>,
    ) {
        let transitions = transitions.into_iter().map(|transition| {
            self.seq += 1;
            (self.seq, transition)
        });
        let transitions = transitions.collect();
        self.changes.push(StoreChange::LogInput(Box::new(LoggedInput {
            input_seq,
            at: self.now,
            event_id,
            input,
            transitions,
        })));
    }

    /// How many more sequence numbers publishing may use: each changed item makes a few events at most.
    pub(super) fn max_new_seqs(&self) -> u64 {
        let delta = &self.delta;
        (delta.changed.len() + delta.removed.len() + delta.windows.len() + delta.sessions.len()) as u64 * 8
    }

    /// Replies only after the commit: an acknowledged event is stored.
    pub(super) fn send_replies(self, stored: Result<(), StoreError>) {
        for (reply, outcome) in self.receipts {
            let outcome = match (&stored, outcome) {
                (Err(error), Ok(_)) => {
                    let error = ApiError::new(ErrorCode::NotStored, format!("the event was not stored: {error}"));
                    Err(error.with_hint("run `agtmux daemon status` to see the error, then send the event again"))
                }
                (_, outcome) => outcome,
            };
            let _ = reply.send(outcome);
        }
        for PendingTaskEvents { reply, events, .. } in self.task_events {
            let _ = reply.send(stored.is_ok().then_some(events));
        }
        for done in self.flush_replies {
            let _ = done.send(());
        }
    }
}
