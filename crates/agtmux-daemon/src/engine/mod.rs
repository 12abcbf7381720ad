//! The one place where the fleet and the states of its agents change: observations and events in, then the store, then
//! everyone who watches.

mod adapters;
mod bounds;
mod collect;
mod cursors;
mod explain;
mod far;
mod finish;
mod ingest;
mod locate;
mod shared_process;
mod step;
mod switches;
mod tasks;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use agtmux_agents::{Registry, UserManifests};
use agtmux_api::collect::Batch;
use agtmux_api::config;
use agtmux_api::error::ApiError;
use agtmux_api::wire::{AdapterSwitch, Adapters, Explanation, Receipt};
use agtmux_core::binding::MovedOut;
use agtmux_core::engine::{self as states, StateEngine};
use agtmux_core::fleet::{Fleet, Life, Observation, PaneKey};
use agtmux_core::ids::{Generation, PaneId, ServerKey, ServerName, TargetName};
use agtmux_core::refs::Ref;
use agtmux_core::runtime::{Runtime, RuntimeId};
use agtmux_core::task::TaskEvent;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::clock::Clock;
use crate::observe::{Lookout, Seen};
use crate::recorder::Recorder;
use crate::shared::Shared;
use crate::store::{Change, Remembered, Store, StoreError};
use adapters::Memories;
pub(crate) use adapters::{Filed, FiledEntry, agent_id};
pub(crate) use collect::Collecting;
use cursors::SourceCursors;
use collect::Collector;
pub(crate) use explain::refusal;
use far::FarAgent;
pub(crate) use far::Received;
pub(crate) use ingest::{From, Incoming};
pub(crate) use locate::{Living, Located, Submitted};
use shared_process::Turns;
use step::Step;
use switches::Disabled;
pub(crate) use tasks::TasksTold;
use waiting::Waiting;

/// How many waiting inputs share a transaction.
const BATCH: usize = 256;

/// How many inputs a replay has to go through at the most.
const CHECKPOINT_EVERY: u64 = 5_000;

/// Whoever waits for one looks at each at once.
const SUBMITTED_KEPT: usize = 256;

/// Whoever misses some looks at all.
const STIRRED_KEPT: usize = 1024;

const PURGE_EVERY: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug)]
pub(crate) enum Input {
    Observed(Observation),
    /// A screen was looked at.
    Seen(Box<Seen>),
    /// A file that an agent keeps about itself was read.
    Filed(Box<Filed>),
    Event(Box<Incoming>, oneshot::Sender<Result<Receipt, ApiError>>),
    Explain(Ref, oneshot::Sender<Result<Explanation, ApiError>>),
    Locate(Ref, oneshot::Sender<Result<Located, ApiError>>),
    Resident(ServerName, PaneId, oneshot::Sender<Option<Runtime>>),
    ServersOf(TargetName, oneshot::Sender<Vec<(ServerKey, Generation)>>),
    Adapters(oneshot::Sender<Adapters>),
    Switch(AdapterSwitch, oneshot::Sender<Result<Adapters, ApiError>>),
    /// A hub wants to be told of this host.
    Collect(oneshot::Sender<u64>),
    /// It wants to know what is new.
    Gather(u64, oneshot::Sender<Batch>),
    Leave(u64),
    /// Another host told of itself.
    Received(Box<Received>, oneshot::Sender<()>),
    Near(TargetName, String, oneshot::Sender<Option<RuntimeId>>),
    /// Other agents are known, or are known by other signs.
    Relearned(Arc<Registry>),
    /// Something happened to tasks. Answered when it is stored, with its numbers.
    Tasks(Box<TasksTold>, oneshot::Sender<Option<Vec<TaskEvent>>>),
    /// Answered when everything before it has been applied and published.
    Settle(oneshot::Sender<()>),
}

/// The way in. It waits when the engine is behind: nothing is dropped.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandle {
    inputs: mpsc::Sender<Input>,
    submitted: broadcast::Sender<Submitted>,
    /// Panes of tasks that have gone or died.
    stirred: broadcast::Sender<PaneKey>,
}

impl EngineHandle {
    pub(crate) async fn observe(&self, observation: Observation) {
        // The engine outlives its observers but for the last moments of a shutdown.
        let _ = self.inputs.send(Input::Observed(observation)).await;
    }

    pub(crate) async fn seen(&self, seen: Seen) {
        let _ = self.inputs.send(Input::Seen(Box::new(seen))).await;
    }

    pub(crate) async fn filed(&self, filed: Filed) {
        let _ = self.inputs.send(Input::Filed(Box::new(filed))).await;
    }

    /// Returns when the event is stored, or says why it was not taken.
    pub(crate) async fn event(&self, event: Incoming) -> Result<Receipt, ApiError> {
        self.ask(|reply| Input::Event(Box::new(event), reply)).await.unwrap_or_else(|| Err(ingest::stopping()))
    }

    pub(crate) async fn explain(&self, reference: Ref) -> Result<Explanation, ApiError> {
        self.ask(|reply| Input::Explain(reference, reply)).await.unwrap_or_else(|| Err(ingest::stopping()))
    }

    pub(crate) async fn locate(&self, reference: Ref) -> Result<Located, ApiError> {
        self.ask(|reply| Input::Locate(reference, reply)).await.unwrap_or_else(|| Err(ingest::stopping()))
    }

    /// Who lives in a pane of this machine.
    pub(crate) async fn resident(&self, server: ServerName, pane: PaneId) -> Option<Runtime> {
        self.ask(|reply| Input::Resident(server, pane, reply)).await.flatten()
    }

    /// The servers that are known of a host, whoever told of them.
    pub(crate) async fn servers_of(&self, target: TargetName) -> Vec<(ServerKey, Generation)> {
        self.ask(|reply| Input::ServersOf(target, reply)).await.unwrap_or_default()
    }

    /// Prompts that agents tell to have been submitted, from now on.
    pub(crate) fn submitted(&self) -> broadcast::Receiver<Submitted> {
        self.submitted.subscribe()
    }

    pub(crate) async fn adapters(&self) -> Result<Adapters, ApiError> {
        self.ask(Input::Adapters).await.ok_or_else(ingest::stopping)
    }

    pub(crate) async fn switch_adapter(&self, switch: AdapterSwitch) -> Result<Adapters, ApiError> {
        self.ask(|reply| Input::Switch(switch, reply)).await.unwrap_or_else(|| Err(ingest::stopping()))
    }

    pub(crate) async fn relearn(&self, registry: Arc<Registry>) {
        let _ = self.inputs.send(Input::Relearned(registry)).await;
    }

    /// Stores what happened to tasks and gives it its numbers. None if it could not be stored.
    pub(crate) async fn tasks(&self, told: TasksTold) -> Option<Vec<TaskEvent>> {
        self.ask(|reply| Input::Tasks(Box::new(told), reply)).await.flatten()
    }

    /// Panes of tasks that have gone or died, from now on.
    pub(crate) fn stirred(&self) -> broadcast::Receiver<PaneKey> {
        self.stirred.subscribe()
    }

    pub(crate) async fn settle(&self) {
        self.ask(Input::Settle).await;
    }

    async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inputs.send(input(reply)).await.ok()?;
        answer.await.ok()
    }
}

pub(crate) struct Engine {
    clock: Clock,
    settings: config::State,
    fleet: Fleet,
    states: StateEngine,
    /// Where each runtime lives.
    homes: BTreeMap<RuntimeId, PaneKey>,
    /// What runtimes of other hosts are called there.
    far: BTreeMap<RuntimeId, FarAgent>,
    /// Hosts that tell of more than is kept.
    overfull: BTreeSet<TargetName>,
    collectors: BTreeMap<u64, Collector>,
    last_collector: u64,
    moved_out: MovedOut,
    registry: Arc<Registry>,
    cursors: SourceCursors,
    memories: Memories,
    turns: Turns,
    disabled: Disabled,
    lookout: Arc<Lookout>,
    /// Events that wait for their runtime.
    waiting: Waiting,
    /// Until then time alone changes nothing.
    deadline: Timestamp,
    /// When time was last let pass.
    stepped_at: Timestamp,
    /// The number of the last input in the log, and of the one in the last checkpoint.
    last_n: u64,
    checkpoint_n: u64,
    purge_at: Timestamp,
    recorder: Recorder,
    store: Arc<Store>,
    reader: rusqlite::Connection,
    store_error: StoreErrorNote,
    shared: Arc<Shared>,
    reserved: u64,
    inputs: mpsc::Receiver<Input>,
    submitted: broadcast::Sender<Submitted>,
    stirred: broadcast::Sender<PaneKey>,
    /// Where tasks were started.
    task_panes: BTreeSet<PaneKey>,
}

/// Why nothing can be stored, for the health report.
pub(crate) type StoreErrorNote = Arc<Mutex<Option<String>>>;

impl Engine {
    pub(crate) fn new(
        clock: Clock,
        settings: config::State,
        remembered: Remembered,
        store: Arc<Store>,
        store_error: StoreErrorNote,
        shared: Arc<Shared>,
        lookout: Arc<Lookout>,
    ) -> Result<(Self, EngineHandle), StoreError> {
        let (inputs, received) = mpsc::channel(1024);
        let submitted = broadcast::Sender::new(SUBMITTED_KEPT);
        let stirred = broadcast::Sender::new(STIRRED_KEPT);
        let reserved = shared.read().seq();
        let reader = store.reader()?;
        let completed_for = SignedDuration::try_from(settings.completed_to_idle.0).unwrap_or(SignedDuration::MAX);
        let mut engine = Self {
            clock,
            settings,
            fleet: remembered.fleet,
            states: remembered.states.unwrap_or_else(|| StateEngine::new(completed_for)),
            homes: BTreeMap::new(),
            far: BTreeMap::new(),
            overfull: BTreeSet::new(),
            collectors: BTreeMap::new(),
            last_collector: 0,
            moved_out: MovedOut::default(),
            registry: Arc::new(UserManifests::default().registry()),
            turns: Turns::default(),
            cursors: SourceCursors::new(remembered.cursors),
            memories: Memories::new(remembered.memories),
            disabled: remembered.disabled,
            lookout,
            waiting: Waiting::new(remembered.waiting),
            deadline: Timestamp::MIN,
            stepped_at: clock.now(),
            last_n: remembered.last_n,
            checkpoint_n: 0,
            purge_at: clock.now(),
            recorder: Recorder::default(),
            store,
            reader,
            store_error,
            shared,
            reserved,
            inputs: received,
            submitted: submitted.clone(),
            stirred: stirred.clone(),
            task_panes: BTreeSet::new(),
        };
        engine.states.set_completed_for(completed_for);
        for (key, server) in engine.fleet.servers() {
            for (id, runtime) in server.panes.iter().filter_map(|(id, pane)| Some((id, pane.runtime.as_ref()?))) {
                engine.homes.insert(runtime.id.clone(), PaneKey { server: key.clone(), pane: *id });
            }
        }
        Ok((engine, EngineHandle { inputs, submitted, stirred }))
    }

    /// With the agents that are known from the start.
    pub(crate) fn knowing(self, registry: Arc<Registry>) -> Self {
        Self { registry, ..self }
    }

    /// Runs until every handle is gone.
    pub(crate) async fn run(mut self) {
        self.begin().await;
        let mut batch = Vec::new();
        loop {
            self.deadline = self.next_deadline(self.stepped_at);
            let deadline = self.clock.instant(self.deadline).into();
            tokio::select! {
                received = self.inputs.recv_many(&mut batch, BATCH) => if received == 0 { return },
                () = tokio::time::sleep_until(deadline) => {}
            }
            let mut step = Step::new(self.clock.now(), self.shared.read().seq());
            for input in batch.drain(..) {
                self.take(input, &mut step);
            }
            self.let_time_pass(&mut step);
            self.finish(step).await;
        }
    }

    /// What the store remembers of fleet and states may be from different moments; here they meet.
    async fn begin(&mut self) {
        let mut step = Step::new(self.clock.now(), self.shared.read().seq());
        let orphans: Vec<RuntimeId> =
            self.states.runtimes().map(|(id, _)| id).filter(|id| !self.homes.contains_key(id)).cloned().collect();
        for runtime in orphans {
            self.decide(states::Input::Ended { runtime }, None, &mut step);
        }
        for (id, key) in self.homes.clone() {
            let Some(runtime) = self.fleet.pane(&key).and_then(|pane| pane.runtime.clone()) else { continue };
            if !self.states.knows(&id) {
                self.decide(began(&key, &runtime), None, &mut step);
            }
            // Nobody has seen its state in this life of the daemon.
            step.touch(&self.fleet, &key);
        }
        for input in self.states.due(step.now) {
            self.decide(input, None, &mut step);
        }
        self.checkpoint(&mut step, false);
        self.finish(step).await;
    }

    fn take(&mut self, input: Input, step: &mut Step) {
        match input {
            Input::Observed(observation) => self.observe(observation, step),
            Input::Received(received, done) => {
                self.receive(*received, step);
                step.settled.push(done);
            }
            Input::Near(target, runtime_id, reply) => {
                let _ = reply.send(self.near(&target, &runtime_id));
            }
            Input::Collect(reply) => {
                let _ = reply.send(self.open_collector());
            }
            Input::Gather(id, reply) => self.gather(id, reply),
            Input::Leave(id) => {
                self.collectors.remove(&id);
            }
            Input::Tasks(told, reply) => step.note_tasks(*told, reply),
            Input::Event(event, reply) => {
                let outcome = self.ingest(*event, step);
                step.receipts.push((reply, outcome));
            }
            Input::Seen(seen) => self.seen(*seen, step),
            Input::Filed(filed) => self.filed(*filed, step),
            Input::Explain(reference, reply) => {
                let _ = reply.send(self.explain(&reference, step.now));
            }
            Input::Locate(reference, reply) => {
                let _ = reply.send(self.locate(&reference));
            }
            Input::Resident(server, pane, reply) => {
                let key = PaneKey { server: ServerKey { target: TargetName::local(), server }, pane };
                let _ = reply.send(self.fleet.pane(&key).and_then(|pane| pane.runtime.clone()));
            }
            Input::ServersOf(target, reply) => {
                let of = self.fleet.servers().filter(|(key, _)| key.target == target);
                let _ = reply.send(of.map(|(key, server)| (key.clone(), server.generation)).collect());
            }
            Input::Adapters(reply) => {
                let _ = reply.send(self.adapters(step.now));
            }
            Input::Switch(switch, reply) => {
                let _ = reply.send(self.switch(&switch.name, switch.enabled, step));
            }
            Input::Relearned(registry) => self.relearn(registry, step),
            Input::Settle(done) => step.settled.push(done),
        }
    }

    fn observe(&mut self, observation: Observation, step: &mut Step) {
        self.note_task_pane(&observation);
        let delta = self.fleet.apply(observation, step.now);
        for life in &delta.lives {
            self.live(life, step);
        }
        // Only now: several may have begun at once, and each must be known before it can be spoken of.
        if delta.lives.iter().any(|life| matches!(life, Life::Began { .. })) {
            self.bind_waiting(step);
        }
        self.tell_tasks(&delta, step);
        step.merge(delta);
    }

    fn live(&mut self, life: &Life, step: &mut Step) {
        match life {
            Life::Began { pane, runtime } => {
                self.homes.insert(runtime.id.clone(), pane.clone());
                self.decide(began(pane, runtime), None, step);
            }
            Life::Ended { pane, runtime, process } => {
                self.decide(states::Input::Ended { runtime: runtime.clone() }, None, step);
                self.cursors.forget(runtime);
                self.memories.forget(runtime);
                self.turns.forget(runtime);
                self.far.remove(runtime);
                self.homes.remove(runtime);
                self.moved_out.note(pane.clone(), *process, step.now);
            }
            Life::Suspended { runtime, suspended } => {
                let input = states::Input::Suspended { runtime: runtime.clone(), suspended: *suspended };
                self.decide(input, None, step);
            }
            Life::Reachable { server, reachable } => {
                let input = states::Input::Reachable { server: server.clone(), reachable: *reachable };
                self.decide(input, None, step);
            }
        }
    }

    /// Applies one input, and writes down what it was and what it brought about.
    fn decide(&mut self, input: states::Input, event_id: Option<String>, step: &mut Step) {
        let transitions = self.states.apply(input.clone(), step.now);
        step.note_known(&input);
        for transition in &transitions {
            self.turns.note(transition, step.now);
            if let Some(pane) = self.homes.get(&transition.runtime) {
                step.touch(&self.fleet, pane);
                step.restated.insert(transition.runtime.clone());
            }
        }
        self.last_n += 1;
        step.log(self.last_n, event_id, input, transitions);
    }

    /// Looking what is due costs time for every agent there is, so it is done when something may be.
    fn let_time_pass(&mut self, step: &mut Step) {
        if self.turns.take_news() {
            self.bind_waiting(step);
        }
        if self.deadline <= step.now {
            for input in self.states.due(step.now) {
                self.decide(input, None, step);
            }
        }
        self.recall(step);
        self.drop_expired(step);
        if self.last_n >= self.checkpoint_n + CHECKPOINT_EVERY {
            self.checkpoint(step, false);
        }
        if self.purge_at <= step.now {
            self.purge_at = step.now.checked_add(PURGE_EVERY).unwrap_or(Timestamp::MAX);
            if self.last_n > self.checkpoint_n {
                // What came before a checkpoint is not needed for a replay, so it can go.
                self.checkpoint(step, false);
            }
            let ago = |span: config::Span| step.now.checked_sub(span.0).unwrap_or(Timestamp::MIN);
            step.changes.push(Change::Purge {
                payloads_before: ago(self.settings.payload_retention),
                all_before: ago(self.settings.metadata_retention),
            });
        }
    }

    /// Since the last step: what came due while that was being stored is due now.
    fn next_deadline(&self, since: Timestamp) -> Timestamp {
        let states = self.states.next_deadline(since);
        let waiting = self.waiting.oldest().map(|event| self.expires_at(event));
        [states, waiting, self.memories.next_due()].into_iter().flatten().fold(self.purge_at, Timestamp::min)
    }
}

fn began(pane: &PaneKey, runtime: &agtmux_core::runtime::Runtime) -> states::Input {
    states::Input::Began {
        runtime: runtime.id.clone(),
        server: pane.server.clone(),
        agent_type: runtime.agent_type.clone(),
        suspended: runtime.suspended,
    }
}
