//! The effects of one batch of inputs, before they are stored and published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

use super::tasks::{TaskReply, TaskUpdateOutcome};
use crate::store::{LoggedInput, StoreChange, StoreError, TaskSession, TaskSessionKey};
use crate::view::TargetChange;

/// The reply to a posted event.
type IngestResult = Result<EventReceipt, ApiError>;

#[derive(Default)]
pub(super) struct EngineStep {
    pub(super) now: Timestamp,
    /// The last sequence number that was assigned.
    pub(super) seq: u64,
    pub(super) delta: FleetDelta,
    pub(super) targets: Vec<TargetChange>,
    pub(super) changes: Vec<StoreChange>,
    /// Whether this step stores the clock setting: true when the daemon starts, and when the clock was set.
    pub(super) stores_clock: bool,
    /// Runtimes whose state has changed.
    pub(super) changed_states: BTreeSet<RuntimeId>,
    /// Runtimes whose evidence has changed.
    pub(super) changed_evidence: BTreeSet<RuntimeId>,
    /// The dedupe keys of events that are not stored yet, each with the id and content hash of its event.
    pub(super) dedupe_keys: BTreeMap<(RuntimeId, Source, String), (String, String)>,
    pub(super) receipts: Vec<(oneshot::Sender<IngestResult>, IngestResult)>,
    pub(super) flush_replies: Vec<oneshot::Sender<()>>,
    /// The changed task sessions. Once they are stored, they replace the sessions of the last commit.
    pub(super) task_sessions: BTreeMap<TaskSessionKey, Arc<TaskSession>>,
    /// Task sessions in which a window may have changed.
    pub(super) task_sessions_to_check: BTreeSet<TaskSessionKey>,
    /// Task events, which are published once they are stored.
    task_events: Vec<TaskWatchEvent>,
    task_replies: Vec<(TaskReply, TaskUpdateOutcome)>,
}

impl EngineStep {
    pub(super) fn new(now: Timestamp, seq: u64) -> Self {
        Self { now, seq, ..Self::default() }
    }

    /// Adds a delta. A pane may then be in both `changed` and `removed`. That does no harm, because readers look up the
    /// pane in the fleet.
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

    /// If the input changes the evidence about a runtime, marks the runtime, so that hubs get the new evidence. Hubs
    /// need no message about the other inputs: these follow from the topology, which hubs get separately, or from the
    /// passing of time.
    pub(super) fn note_changed_evidence(&mut self, input: &ResolverInput) {
        match input {
            ResolverInput::Started { runtime, .. }
            | ResolverInput::Observed { runtime, .. }
            | ResolverInput::Unrecognized { runtime, .. }
            | ResolverInput::AgentIdentified { runtime, .. }
            | ResolverInput::HoldEnded { runtime }
            | ResolverInput::LedgerReplaced { runtime, .. }
            | ResolverInput::LedgerCleared { runtime }
            | ResolverInput::Seen { runtime } => {
                self.changed_evidence.insert(runtime.clone());
            }
            ResolverInput::Ended { .. }
            | ResolverInput::Suspended { .. }
            | ResolverInput::Reachable { .. }
            | ResolverInput::DemotionDue { .. }
            | ResolverInput::Reevaluate { .. }
            | ResolverInput::ClockStepped { .. }
            | ResolverInput::TimeSkipped { .. } => {}
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

    /// Assigns sequence numbers to the events of a task session, and keeps the reply until the events are stored.
    pub(super) fn add_task_events(
        &mut self,
        key: &TaskSessionKey,
        events: Vec<TaskEvent>,
        outcome: TaskUpdateOutcome,
        reply: TaskReply,
    ) {
        let server = key.server().server.to_string();
        for mut event in events {
            self.seq += 1;
            event.seq = self.seq;
            let stored = Box::new(event.clone());
            self.changes.push(StoreChange::PutTaskEvent { socket: key.socket.clone(), event: stored });
            let target = TargetName::LOCAL.into();
            self.task_events.push(TaskWatchEvent { target, server: server.clone(), event });
        }
        self.task_replies.push((reply, outcome));
    }

    /// Takes the task events that are to be published. Returns none if they could not be stored: the caller of the
    /// update then tries again, and the events get other numbers.
    pub(super) fn take_task_events(&mut self, stored: bool) -> Vec<TaskWatchEvent> {
        std::mem::take(&mut self.task_events).into_iter().filter(|_| stored).collect()
    }

    /// The body of an event that arrived in this step.
    pub(super) fn body_of(&self, event_id: &str) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            StoreChange::PutEvent { event, body } if event.order.event_id == event_id => body.as_deref(),
            _ => None,
        })
    }

    /// Logs an input together with its transitions. Transitions and published events share one sequence of numbers.
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

    /// An upper limit on the sequence numbers that this step needs when it is published. Each changed item causes only
    /// a few events.
    pub(super) fn max_new_seqs(&self) -> u64 {
        let delta = &self.delta;
        let items = delta.changed.len() + delta.removed.len() + delta.windows.len() + delta.sessions.len();
        // One more event each for the outages and the health of this machine.
        items as u64 * 8 + self.targets.len() as u64 + 2
    }

    /// Sends all replies. Must be called after the commit, because an event may be acknowledged only once it is stored.
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
        for (reply, outcome) in self.task_replies {
            let _ = reply.send(stored.is_ok().then_some(outcome));
        }
        for done in self.flush_replies {
            let _ = done.send(());
        }
    }
}
