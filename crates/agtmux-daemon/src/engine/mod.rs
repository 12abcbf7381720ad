//! The one place where the fleet and the states of its agents change: observations and events in, then the store, then
//! everyone who watches.

mod adapter_switches;
mod adapters;
mod collect;
mod cursors;
mod explain;
mod finish;
mod ingest;
mod locate;
mod remote;
mod remote_limits;
mod shared_process;
mod step;
mod tasks;
#[cfg(test)]
mod tests;
mod unbound_events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use agtmux_agents::{AgentRegistry, UserManifests};
use agtmux_api::collect::EvidenceBatch;
use agtmux_api::config;
use agtmux_api::error::ApiError;
use agtmux_api::wire::{AdapterList, AdapterSwitch, EventReceipt, Explanation};
use agtmux_core::binding::RecentlyEnded;
use agtmux_core::fleet::{Fleet, PaneKey, RuntimeChange, TopologyUpdate};
use agtmux_core::ids::{Generation, PaneId, ServerKey, ServerName, TargetName};
use agtmux_core::refs::PaneRef;
use agtmux_core::resolver::{self as states, StateResolver};
use agtmux_core::runtime::{Runtime, RuntimeId};
use agtmux_core::task::TaskEvent;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::clock::Clock;
use crate::event_log::EventLog;
use crate::fleet_diff::FleetDiff;
use crate::observe::{RecheckHints, ScreenEvidence};
use crate::store::{Store, StoreChange, StoreContents, StoreError};
use adapter_switches::DisabledAdapters;
use adapters::AdapterMemories;
pub(crate) use adapters::{FileEntry, FileEvidence, agent_id};
use collect::EvidenceSubscriber;
pub(crate) use collect::EvidenceSubscription;
use cursors::SourceCursors;
pub(crate) use explain::ref_error;
pub(crate) use ingest::{EventAddress, IncomingEvent};
pub(crate) use locate::{LocatedAgent, LocatedPane, SubmittedPrompt};
use remote::RemoteAgent;
pub(crate) use remote::RemoteBatch;
use shared_process::TurnStarts;
use step::EngineStep;
pub(crate) use tasks::TaskEventBatch;
use unbound_events::UnboundEvents;

/// How many waiting inputs share a transaction.
const MAX_BATCH: usize = 256;

/// How many inputs a replay has to go through at the most.
const CHECKPOINT_EVERY: u64 = 5_000;

/// Whoever waits for one looks at each at once.
const SUBMITTED_CAPACITY: usize = 256;

/// Whoever misses some looks at all.
const TASK_PANE_CAPACITY: usize = 1024;

const PURGE_EVERY: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug)]
pub(crate) enum EngineInput {
    Topology(TopologyUpdate),
    /// A screen was looked at.
    Screen(Box<ScreenEvidence>),
    /// A file that an agent keeps about itself was read.
    FileEvidence(Box<FileEvidence>),
    Event(Box<IncomingEvent>, oneshot::Sender<Result<EventReceipt, ApiError>>),
    Explain(PaneRef, oneshot::Sender<Result<Explanation, ApiError>>),
    Locate(PaneRef, oneshot::Sender<Result<LocatedPane, ApiError>>),
    RuntimeInPane(ServerName, PaneId, oneshot::Sender<Option<Runtime>>),
    ListServers(TargetName, oneshot::Sender<Vec<(ServerKey, Generation)>>),
    Adapters(oneshot::Sender<AdapterList>),
    SwitchAdapter(AdapterSwitch, oneshot::Sender<Result<AdapterList, ApiError>>),
    /// A hub wants to be told of this host.
    Subscribe(oneshot::Sender<u64>),
    /// It wants to know what is new.
    NextBatch(u64, oneshot::Sender<EvidenceBatch>),
    Unsubscribe(u64),
    /// Another host told of itself.
    RemoteBatch(Box<RemoteBatch>, oneshot::Sender<()>),
    LocalId(TargetName, String, oneshot::Sender<Option<RuntimeId>>),
    /// Other agents are known, or are known by other signs.
    SetRegistry(Arc<AgentRegistry>),
    /// Something happened to tasks. Answered when it is stored, with its numbers.
    TaskEvents(Box<TaskEventBatch>, oneshot::Sender<Option<Vec<TaskEvent>>>),
    /// Answered when everything before it has been applied and published.
    Flush(oneshot::Sender<()>),
}

/// The way in. It waits when the engine is behind: nothing is dropped.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandle {
    inputs: mpsc::Sender<EngineInput>,
    submitted: broadcast::Sender<SubmittedPrompt>,
    /// Panes of tasks that have gone or died.
    task_pane_changed: broadcast::Sender<PaneKey>,
}

impl EngineHandle {
    pub(crate) async fn apply_topology(&self, observation: TopologyUpdate) {
        // The engine outlives its observers but for the last moments of a shutdown.
        let _ = self.inputs.send(EngineInput::Topology(observation)).await;
    }

    pub(crate) async fn apply_screen(&self, seen: ScreenEvidence) {
        let _ = self.inputs.send(EngineInput::Screen(Box::new(seen))).await;
    }

    pub(crate) async fn apply_file(&self, filed: FileEvidence) {
        let _ = self.inputs.send(EngineInput::FileEvidence(Box::new(filed))).await;
    }

    /// Returns when the event is stored, or says why it was not taken.
    pub(crate) async fn ingest_event(&self, event: IncomingEvent) -> Result<EventReceipt, ApiError> {
        self.request(|reply| EngineInput::Event(Box::new(event), reply))
            .await
            .unwrap_or_else(|| Err(ingest::stopping_error()))
    }

    pub(crate) async fn explain(&self, reference: PaneRef) -> Result<Explanation, ApiError> {
        self.request(|reply| EngineInput::Explain(reference, reply))
            .await
            .unwrap_or_else(|| Err(ingest::stopping_error()))
    }

    pub(crate) async fn locate(&self, reference: PaneRef) -> Result<LocatedPane, ApiError> {
        self.request(|reply| EngineInput::Locate(reference, reply))
            .await
            .unwrap_or_else(|| Err(ingest::stopping_error()))
    }

    /// Who lives in a pane of this machine.
    pub(crate) async fn runtime_in_pane(&self, server: ServerName, pane: PaneId) -> Option<Runtime> {
        self.request(|reply| EngineInput::RuntimeInPane(server, pane, reply)).await.flatten()
    }

    /// The servers that are known of a host, whoever told of them.
    pub(crate) async fn servers_of(&self, target: TargetName) -> Vec<(ServerKey, Generation)> {
        self.request(|reply| EngineInput::ListServers(target, reply)).await.unwrap_or_default()
    }

    /// Prompts that agents tell to have been submitted, from now on.
    pub(crate) fn subscribe_submitted(&self) -> broadcast::Receiver<SubmittedPrompt> {
        self.submitted.subscribe()
    }

    pub(crate) async fn adapters(&self) -> Result<AdapterList, ApiError> {
        self.request(EngineInput::Adapters).await.ok_or_else(ingest::stopping_error)
    }

    pub(crate) async fn switch_adapter(&self, switch: AdapterSwitch) -> Result<AdapterList, ApiError> {
        self.request(|reply| EngineInput::SwitchAdapter(switch, reply))
            .await
            .unwrap_or_else(|| Err(ingest::stopping_error()))
    }

    pub(crate) async fn set_registry(&self, registry: Arc<AgentRegistry>) {
        let _ = self.inputs.send(EngineInput::SetRegistry(registry)).await;
    }

    /// Stores what happened to tasks and gives it its numbers. None if it could not be stored.
    pub(crate) async fn record_task_events(&self, told: TaskEventBatch) -> Option<Vec<TaskEvent>> {
        self.request(|reply| EngineInput::TaskEvents(Box::new(told), reply)).await.flatten()
    }

    /// Panes of tasks that have gone or died, from now on.
    pub(crate) fn subscribe_task_panes(&self) -> broadcast::Receiver<PaneKey> {
        self.task_pane_changed.subscribe()
    }

    pub(crate) async fn flush(&self) {
        self.request(EngineInput::Flush).await;
    }

    async fn request<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> EngineInput) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inputs.send(input(reply)).await.ok()?;
        answer.await.ok()
    }
}

pub(crate) struct Engine {
    clock: Clock,
    settings: config::StateConfig,
    fleet: Fleet,
    states: StateResolver,
    /// Where each runtime lives.
    runtime_panes: BTreeMap<RuntimeId, PaneKey>,
    /// What runtimes of other hosts are called there.
    remote_agents: BTreeMap<RuntimeId, RemoteAgent>,
    /// Hosts that tell of more than is kept.
    truncated_targets: BTreeSet<TargetName>,
    subscribers: BTreeMap<u64, EvidenceSubscriber>,
    last_subscriber_id: u64,
    ended_processes: RecentlyEnded,
    registry: Arc<AgentRegistry>,
    cursors: SourceCursors,
    memories: AdapterMemories,
    turn_starts: TurnStarts,
    disabled_adapters: DisabledAdapters,
    recheck_hints: Arc<RecheckHints>,
    /// Events that wait for their runtime.
    unbound_events: UnboundEvents,
    /// Until then time alone changes nothing.
    deadline: Timestamp,
    /// When time was last let pass.
    last_step_at: Timestamp,
    /// The number of the last input in the log, and of the one in the last checkpoint.
    last_input_n: u64,
    checkpoint_n: u64,
    purge_at: Timestamp,
    fleet_diff: FleetDiff,
    store: Arc<Store>,
    reader: rusqlite::Connection,
    store_error: StoreErrorNote,
    event_log: Arc<EventLog>,
    reserved_seq: u64,
    inputs: mpsc::Receiver<EngineInput>,
    submitted: broadcast::Sender<SubmittedPrompt>,
    task_pane_changed: broadcast::Sender<PaneKey>,
    /// Where tasks were started.
    task_panes: BTreeSet<PaneKey>,
}

/// Why nothing can be stored, for the health report.
pub(crate) type StoreErrorNote = Arc<Mutex<Option<String>>>;

impl Engine {
    pub(crate) fn new(
        clock: Clock,
        settings: config::StateConfig,
        remembered: StoreContents,
        store: Arc<Store>,
        store_error: StoreErrorNote,
        shared: Arc<EventLog>,
        lookout: Arc<RecheckHints>,
    ) -> Result<(Self, EngineHandle), StoreError> {
        let (inputs, received) = mpsc::channel(1024);
        let submitted = broadcast::Sender::new(SUBMITTED_CAPACITY);
        let stirred = broadcast::Sender::new(TASK_PANE_CAPACITY);
        let reserved = shared.read().seq();
        let reader = store.reader()?;
        let completed_for = SignedDuration::try_from(settings.completed_to_idle.0).unwrap_or(SignedDuration::MAX);
        let mut engine = Self {
            clock,
            settings,
            fleet: remembered.fleet,
            states: remembered.states.unwrap_or_else(|| StateResolver::new(completed_for)),
            runtime_panes: BTreeMap::new(),
            remote_agents: BTreeMap::new(),
            truncated_targets: BTreeSet::new(),
            subscribers: BTreeMap::new(),
            last_subscriber_id: 0,
            ended_processes: RecentlyEnded::default(),
            registry: Arc::new(UserManifests::default().registry()),
            turn_starts: TurnStarts::default(),
            cursors: SourceCursors::new(remembered.cursors),
            memories: AdapterMemories::new(remembered.memories),
            disabled_adapters: remembered.disabled_adapters,
            recheck_hints: lookout,
            unbound_events: UnboundEvents::new(remembered.unbound_events),
            deadline: Timestamp::MIN,
            last_step_at: clock.now(),
            last_input_n: remembered.last_input_n,
            checkpoint_n: 0,
            purge_at: clock.now(),
            fleet_diff: FleetDiff::default(),
            store,
            reader,
            store_error,
            event_log: shared,
            reserved_seq: reserved,
            inputs: received,
            submitted: submitted.clone(),
            task_pane_changed: stirred.clone(),
            task_panes: BTreeSet::new(),
        };
        engine.states.set_completed_for(completed_for);
        for (key, server) in engine.fleet.servers() {
            for (id, runtime) in server.panes.iter().filter_map(|(id, pane)| Some((id, pane.runtime.as_ref()?))) {
                engine.runtime_panes.insert(runtime.id.clone(), PaneKey { server: key.clone(), pane: *id });
            }
        }
        Ok((engine, EngineHandle { inputs, submitted, task_pane_changed: stirred }))
    }

    /// With the agents that are known from the start.
    pub(crate) fn with_registry(self, registry: Arc<AgentRegistry>) -> Self {
        Self { registry, ..self }
    }

    /// Runs until every handle is gone.
    pub(crate) async fn run(mut self) {
        self.reconcile_on_start().await;
        let mut batch = Vec::new();
        loop {
            self.deadline = self.next_deadline(self.last_step_at);
            let deadline = self.clock.instant(self.deadline).into();
            tokio::select! {
                received = self.inputs.recv_many(&mut batch, MAX_BATCH) => if received == 0 { return },
                () = tokio::time::sleep_until(deadline) => {}
            }
            let mut step = EngineStep::new(self.clock.now(), self.event_log.read().seq());
            for input in batch.drain(..) {
                self.handle_input(input, &mut step);
            }
            self.apply_due_work(&mut step);
            self.finish(step).await;
        }
    }

    /// What the store remembers of fleet and states may be from different moments; here they meet.
    async fn reconcile_on_start(&mut self) {
        let mut step = EngineStep::new(self.clock.now(), self.event_log.read().seq());
        let orphans: Vec<RuntimeId> = self
            .states
            .runtimes()
            .map(|(id, _)| id)
            .filter(|id| !self.runtime_panes.contains_key(id))
            .cloned()
            .collect();
        for runtime in orphans {
            self.resolve(states::ResolverInput::Ended { runtime }, None, &mut step);
        }
        for (id, key) in self.runtime_panes.clone() {
            let Some(runtime) = self.fleet.pane(&key).and_then(|pane| pane.runtime.clone()) else { continue };
            if !self.states.has_runtime(&id) {
                self.resolve(began_input(&key, &runtime), None, &mut step);
            }
            // Nobody has seen its state in this life of the daemon.
            step.mark_pane_changed(&self.fleet, &key);
        }
        for input in self.states.due_inputs(step.now) {
            self.resolve(input, None, &mut step);
        }
        self.checkpoint(&mut step, false);
        self.finish(step).await;
    }

    fn handle_input(&mut self, input: EngineInput, step: &mut EngineStep) {
        match input {
            EngineInput::Topology(observation) => self.apply_topology(observation, step),
            EngineInput::RemoteBatch(received, done) => {
                self.apply_remote_batch(*received, step);
                step.flush_replies.push(done);
            }
            EngineInput::LocalId(target, runtime_id, reply) => {
                let _ = reply.send(self.local_id(&target, &runtime_id));
            }
            EngineInput::Subscribe(reply) => {
                let _ = reply.send(self.add_subscriber());
            }
            EngineInput::NextBatch(id, reply) => self.request_batch(id, reply),
            EngineInput::Unsubscribe(id) => {
                self.subscribers.remove(&id);
            }
            EngineInput::TaskEvents(told, reply) => step.add_task_events(*told, reply),
            EngineInput::Event(event, reply) => {
                let outcome = self.ingest(*event, step);
                step.receipts.push((reply, outcome));
            }
            EngineInput::Screen(seen) => self.observe_screen(*seen, step),
            EngineInput::FileEvidence(filed) => self.reduce_file(*filed, step),
            EngineInput::Explain(reference, reply) => {
                let _ = reply.send(self.explain(&reference, step.now));
            }
            EngineInput::Locate(reference, reply) => {
                let _ = reply.send(self.locate(&reference));
            }
            EngineInput::RuntimeInPane(server, pane, reply) => {
                let key = PaneKey { server: ServerKey { target: TargetName::local(), server }, pane };
                let _ = reply.send(self.fleet.pane(&key).and_then(|pane| pane.runtime.clone()));
            }
            EngineInput::ListServers(target, reply) => {
                let of = self.fleet.servers().filter(|(key, _)| key.target == target);
                let _ = reply.send(of.map(|(key, server)| (key.clone(), server.generation)).collect());
            }
            EngineInput::Adapters(reply) => {
                let _ = reply.send(self.adapters(step.now));
            }
            EngineInput::SwitchAdapter(switch, reply) => {
                let _ = reply.send(self.switch_adapter(&switch.name, switch.enabled, step));
            }
            EngineInput::SetRegistry(registry) => self.replace_registry(registry, step),
            EngineInput::Flush(done) => step.flush_replies.push(done),
        }
    }

    fn apply_topology(&mut self, observation: TopologyUpdate, step: &mut EngineStep) {
        self.track_task_pane(&observation);
        let delta = self.fleet.apply(observation, step.now);
        for life in &delta.runtime_changes {
            self.apply_life(life, step);
        }
        // Only now: several may have begun at once, and each must be known before it can be spoken of.
        if delta.runtime_changes.iter().any(|life| matches!(life, RuntimeChange::Started { .. })) {
            self.bind_unbound(step);
        }
        self.apply_task_changes(&delta, step);
        step.merge(delta);
    }

    fn apply_life(&mut self, life: &RuntimeChange, step: &mut EngineStep) {
        match life {
            RuntimeChange::Started { pane, runtime } => {
                self.runtime_panes.insert(runtime.id.clone(), pane.clone());
                self.resolve(began_input(pane, runtime), None, step);
            }
            RuntimeChange::Ended { pane, runtime, process } => {
                self.resolve(states::ResolverInput::Ended { runtime: runtime.clone() }, None, step);
                self.cursors.forget(runtime);
                self.memories.forget(runtime);
                self.turn_starts.forget(runtime);
                self.remote_agents.remove(runtime);
                self.runtime_panes.remove(runtime);
                self.ended_processes.record(pane.clone(), *process, step.now);
            }
            RuntimeChange::Suspended { runtime, suspended } => {
                let input = states::ResolverInput::Suspended { runtime: runtime.clone(), suspended: *suspended };
                self.resolve(input, None, step);
            }
            RuntimeChange::Reachable { server, reachable } => {
                let input = states::ResolverInput::Reachable { server: server.clone(), reachable: *reachable };
                self.resolve(input, None, step);
            }
        }
    }

    /// Applies one input, and writes down what it was and what it brought about.
    fn resolve(&mut self, input: states::ResolverInput, event_id: Option<String>, step: &mut EngineStep) {
        let transitions = self.states.apply(input.clone(), step.now);
        step.note_changed_evidence(&input);
        for transition in &transitions {
            self.turn_starts.record(transition, step.now);
            if let Some(pane) = self.runtime_panes.get(&transition.runtime) {
                step.mark_pane_changed(&self.fleet, pane);
                step.changed_states.insert(transition.runtime.clone());
            }
        }
        self.last_input_n += 1;
        step.log_input(self.last_input_n, event_id, input, transitions);
    }

    /// Looking what is due costs time for every agent there is, so it is done when something may be.
    fn apply_due_work(&mut self, step: &mut EngineStep) {
        if self.turn_starts.take_has_new() {
            self.bind_unbound(step);
        }
        if self.deadline <= step.now {
            for input in self.states.due_inputs(step.now) {
                self.resolve(input, None, step);
            }
        }
        self.release_held(step);
        self.drop_expired(step);
        if self.last_input_n >= self.checkpoint_n + CHECKPOINT_EVERY {
            self.checkpoint(step, false);
        }
        if self.purge_at <= step.now {
            self.purge_at = step.now.checked_add(PURGE_EVERY).unwrap_or(Timestamp::MAX);
            if self.last_input_n > self.checkpoint_n {
                // What came before a checkpoint is not needed for a replay, so it can go.
                self.checkpoint(step, false);
            }
            let ago = |span: config::ConfigDuration| step.now.checked_sub(span.0).unwrap_or(Timestamp::MIN);
            step.changes.push(StoreChange::Purge {
                payloads_before: ago(self.settings.payload_retention),
                all_before: ago(self.settings.metadata_retention),
            });
        }
    }

    /// Since the last step: what came due while that was being stored is due now.
    fn next_deadline(&self, since: Timestamp) -> Timestamp {
        let states = self.states.next_deadline(since);
        let waiting = self.unbound_events.oldest().map(|event| self.expires_at(event));
        [states, waiting, self.memories.next_due()].into_iter().flatten().fold(self.purge_at, Timestamp::min)
    }
}

fn began_input(pane: &PaneKey, runtime: &agtmux_core::runtime::Runtime) -> states::ResolverInput {
    states::ResolverInput::Started {
        runtime: runtime.id.clone(),
        server: pane.server.clone(),
        agent_type: runtime.agent_type.clone(),
        suspended: runtime.suspended,
    }
}
