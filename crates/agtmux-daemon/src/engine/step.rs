//! What one batch of inputs brings about, before it is written and told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{Receipt, TaskNews};
use agtmux_core::engine::{Input, Transition};
use agtmux_core::evidence::Source;
use agtmux_core::fleet::{Delta, Fleet, PaneKey};
use agtmux_core::ids::TargetName;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::task::TaskEvent;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::tasks::TasksTold;
use crate::observe::server_name;
use crate::store::{Change, Logged, StoreError};

/// What became of an event.
type Taken = Result<Receipt, ApiError>;

pub(super) struct Step {
    pub(super) now: Timestamp,
    /// The last number given out.
    pub(super) seq: u64,
    pub(super) delta: Delta,
    pub(super) changes: Vec<Change>,
    /// Runtimes whose state is different.
    pub(super) restated: BTreeSet<RuntimeId>,
    /// Runtimes of which something else is known.
    pub(super) known: BTreeSet<RuntimeId>,
    /// Keys of events that are on their way to the store: event id and content.
    pub(super) keys: BTreeMap<(RuntimeId, Source, String), (String, String)>,
    pub(super) receipts: Vec<(oneshot::Sender<Taken>, Taken)>,
    pub(super) settled: Vec<oneshot::Sender<()>>,
    /// What happened to tasks, told once it is stored.
    pub(super) happened: Vec<Happened>,
}

/// Events that have their numbers, and whoever waits for them to be stored.
pub(super) struct Happened {
    reply: oneshot::Sender<Option<Vec<TaskEvent>>>,
    server: String,
    events: Vec<TaskEvent>,
}

impl Step {
    pub(super) fn new(now: Timestamp, seq: u64) -> Self {
        Self {
            now,
            seq,
            delta: Delta::default(),
            changes: Vec::new(),
            restated: BTreeSet::new(),
            known: BTreeSet::new(),
            keys: BTreeMap::new(),
            receipts: Vec::new(),
            settled: Vec::new(),
            happened: Vec::new(),
        }
    }

    /// Readers look at the fleet for what became of a pane, so it does not matter that it may be in two sets.
    pub(super) fn merge(&mut self, from: Delta) {
        let into = &mut self.delta;
        into.changed.extend(from.changed);
        into.removed.extend(from.removed);
        into.servers.extend(from.servers);
        into.windows.extend(from.windows);
        into.sessions.extend(from.sessions);
        into.lives.extend(from.lives);
        into.targets_changed |= from.targets_changed;
    }

    /// What time alone brings about is no news to others: their time passes as well.
    pub(super) fn note_known(&mut self, input: &Input) {
        match input {
            Input::Began { runtime, .. }
            | Input::Heard { runtime, .. }
            | Input::Silent { runtime, .. }
            | Input::Named { runtime, .. }
            | Input::Recalled { runtime, .. }
            | Input::Muted { runtime } => {
                self.known.insert(runtime.clone());
            }
            Input::Ended { .. }
            | Input::Suspended { .. }
            | Input::Reachable { .. }
            | Input::DemotionDue { .. }
            | Input::Reconsider { .. } => {}
        }
    }

    /// A pane that shows another state.
    pub(super) fn touch(&mut self, fleet: &Fleet, key: &PaneKey) {
        self.delta.changed.insert(key.clone());
        if let Some(pane) = fleet.pane(key) {
            self.delta.windows.insert((key.server.clone(), pane.window));
            let sessions = pane.placements.iter().map(|place| (key.server.clone(), place.session));
            self.delta.sessions.extend(sessions);
        }
    }

    /// Gives events of tasks their numbers.
    pub(super) fn note_tasks(&mut self, told: TasksTold, reply: oneshot::Sender<Option<Vec<TaskEvent>>>) {
        let TasksTold { socket, mut events, changes } = told;
        self.changes.extend(changes);
        for event in &mut events {
            self.seq += 1;
            event.seq = self.seq;
            let event = Box::new(event.clone());
            self.changes.push(Change::PutTaskEvent { socket: socket.clone(), event });
        }
        let server = server_name(Path::new(&socket)).to_string();
        self.happened.push(Happened { reply, server, events });
    }

    /// What happened to tasks, as everybody who watches is told of it.
    pub(super) fn task_news(&self) -> Vec<TaskNews> {
        let news = |happened: &Happened, event: &TaskEvent| TaskNews {
            target: TargetName::LOCAL.into(),
            server: happened.server.clone(),
            event: event.clone(),
        };
        self.happened.iter().flat_map(|it| it.events.iter().map(move |event| news(it, event))).collect()
    }

    /// The body of an event that came in this step.
    pub(super) fn payload_of(&self, event_id: &str) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            Change::PutEvent(event) if event.order.event_id == event_id => event.payload.as_deref(),
            _ => None,
        })
    }

    /// Transitions and the events of the stream share one count.
    pub(super) fn log(&mut self, n: u64, event_id: Option<String>, input: Input, transitions: Vec<Transition>) {
        let transitions = transitions.into_iter().map(|transition| {
            self.seq += 1;
            (self.seq, transition)
        });
        let transitions = transitions.collect();
        self.changes.push(Change::Log(Box::new(Logged { n, at: self.now, event_id, input, transitions })));
    }

    /// How many more numbers publishing may take: each pane makes a few events at most.
    pub(super) fn room(&self) -> u64 {
        let delta = &self.delta;
        (delta.changed.len() + delta.removed.len() + delta.windows.len() + delta.sessions.len()) as u64 * 8
    }

    /// Nobody is told that an event was taken before it is stored.
    pub(super) fn answer(self, stored: Result<(), StoreError>) {
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
        for Happened { reply, events, .. } in self.happened {
            let _ = reply.send(stored.is_ok().then_some(events));
        }
        for done in self.settled {
            let _ = done.send(());
        }
    }
}
