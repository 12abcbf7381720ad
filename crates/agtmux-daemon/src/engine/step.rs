//! What one batch of inputs brings about, before it is written and told.

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

/// What became of an event.
type IngestResult = Result<EventReceipt, ApiError>;

pub(super) struct EngineStep {
    pub(super) now: Timestamp,
    /// The last number given out.
    pub(super) seq: u64,
    pub(super) delta: FleetDelta,
    pub(super) changes: Vec<StoreChange>,
    /// Runtimes whose state is different.
    pub(super) changed_states: BTreeSet<RuntimeId>,
    /// Runtimes of which something else is known.
    pub(super) changed_evidence: BTreeSet<RuntimeId>,
    /// Keys of events that are on their way to the store: event id and content.
    pub(super) dedupe_keys: BTreeMap<(RuntimeId, Source, String), (String, String)>,
    pub(super) receipts: Vec<(oneshot::Sender<IngestResult>, IngestResult)>,
    pub(super) flush_replies: Vec<oneshot::Sender<()>>,
    /// What happened to tasks, told once it is stored.
    pub(super) task_events: Vec<PendingTaskEvents>,
}

/// Events that have their numbers, and whoever waits for them to be stored.
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

    /// Readers look at the fleet for what became of a pane, so it does not matter that it may be in two sets.
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

    /// What time alone brings about is no news to others: their time passes as well.
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

    /// A pane that shows another state.
    pub(super) fn mark_pane_changed(&mut self, fleet: &Fleet, key: &PaneKey) {
        self.delta.changed.insert(key.clone());
        if let Some(pane) = fleet.pane(key) {
            self.delta.windows.insert((key.server.clone(), pane.window));
            let sessions = pane.placements.iter().map(|place| (key.server.clone(), place.session));
            self.delta.sessions.extend(sessions);
        }
    }

    /// Gives events of tasks their numbers.
    pub(super) fn add_task_events(&mut self, told: TaskEventBatch, reply: oneshot::Sender<Option<Vec<TaskEvent>>>) {
        let TaskEventBatch { socket, mut events, changes } = told;
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

    /// What happened to tasks, as everybody who watches is told of it.
    pub(super) fn published_task_events(&self) -> Vec<TaskWatchEvent> {
        let news = |happened: &PendingTaskEvents, event: &TaskEvent| TaskWatchEvent {
            target: TargetName::LOCAL.into(),
            server: happened.server.clone(),
            event: event.clone(),
        };
        self.task_events.iter().flat_map(|it| it.events.iter().map(move |event| news(it, event))).collect()
    }

    /// The body of an event that came in this step.
    pub(super) fn payload_of(&self, event_id: &str) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            StoreChange::PutEvent(event) if event.order.event_id == event_id => event.payload.as_deref(),
            _ => None,
        })
    }

    /// Transitions and the events of the stream share one count.
    pub(super) fn log_input(
        &mut self,
        n: u64,
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
            n,
            at: self.now,
            event_id,
            input,
            transitions,
        })));
    }

    /// How many more numbers publishing may take: each pane makes a few events at most.
    pub(super) fn max_new_seqs(&self) -> u64 {
        let delta = &self.delta;
        (delta.changed.len() + delta.removed.len() + delta.windows.len() + delta.sessions.len()) as u64 * 8
    }

    /// Nobody is told that an event was taken before it is stored.
    pub(super) fn send_replies(self, stored: Result<(), StoreError>) {
        for (reply, outcome) in self.receipts {
            let outcome = match (&stored, outcome) {
                (Err(error), Ok(_)) => {
                    let refusal = ApiError::new(ErrorCode::NotStored, format!("the event was not stored: {error}"));
                    Err(refusal.with_hint("agtmux daemon status shows what is wrong; send it again then"))
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
