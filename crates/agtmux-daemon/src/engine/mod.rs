//! The engine: the only code that changes the fleet and the states of its agents. It applies inputs, commits the
//! changes to the store, then publishes them.

mod adapter_switches;
mod adapters;
mod clock_steps;
mod cursors;
mod explain;
mod finish;
mod handle;
mod ingest;
mod ingest_stats;
mod local_agents;
mod locate;
mod mirrors;
mod names;
mod remote;
mod seen;
mod shared_process;
mod step;
mod submissions;
mod task_sessions;
mod tasks;
#[cfg(test)]
mod tests;
mod unbound_events;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use agtmux_agents::{AgentRegistry, UserManifests};
use agtmux_api::config;
use agtmux_api::error::ApiError;
use agtmux_api::host_protocol::EvidenceBatch;
use agtmux_api::wire::{AdapterList, AdapterSwitch, EventReceipt, SeenReport};
use agtmux_core::binding::RecentlyEnded;
use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey, RuntimeChange, TopologyUpdate};
use agtmux_core::refs::PaneRef;
use agtmux_core::resolver::{ResolverInput, StateResolver};
use agtmux_core::runtime::{Runtime, RuntimeId};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::clock::{BEAT, Clock, LONGEST_STEP, SleepDetector};
use crate::event_log::EventLog;
use crate::fleet_diff::FleetDiff;
use crate::observe::{RecheckHints, ScreenEvidence};
use crate::remote::{EvidenceSubscribers, HostLimits, RemoteBatch};
use crate::store::{Store, StoreChange, StoreContents, StoreError, TaskSessionKey};
use crate::submissions::Submissions;
use crate::view::MirrorPanes;
use crate::view::TargetChange;
use adapters::AdapterMemories;
pub(crate) use adapters::{AGENT_STARTED, FileEntry, FileEvidence, agent_id};
use cursors::SourceCursors;
pub(crate) use explain::ref_error;
pub(crate) use handle::EngineHandle;
pub(crate) use ingest::{EventAddress, IncomingEvent};
pub(crate) use ingest_stats::IngestStats;
pub(crate) use local_agents::LocalAgents;
pub(crate) use locate::{LocatedAgent, LocatedPane, SubmittedPrompt};
pub(crate) use remote::EvidenceSubscription;
use remote::RemoteAgent;
pub(crate) use seen::PaneVisits;
use shared_process::TurnStarts;
use step::EngineStep;
pub(crate) use submissions::SubmissionProgress;
pub(crate) use task_sessions::TaskSessions;
use tasks::TaskReply;
pub(crate) use tasks::{TaskUpdate, TaskUpdateOutcome};
use unbound_events::UnboundEvents;

/// The most queued inputs that share one transaction.
const MAX_BATCH: usize = 256;

/// The engine writes a checkpoint after about this many inputs. This limits how many inputs a replay must apply.
const CHECKPOINT_EVERY: u64 = 5_000;

/// The capacity of the broadcast channel for submitted prompts. Receivers read each prompt as soon as it arrives, so
/// few prompts wait in the channel.
const SUBMITTED_CAPACITY: usize = 256;

/// The capacity of the broadcast channel for changed task sessions. A receiver that falls behind checks all sessions
/// again.
const TASK_SESSION_CAPACITY: usize = 1024;

const PURGE_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// A function that reads the engine and sends a reply. Its second argument is the current time.
type EngineQuery = Box<dyn FnOnce(&Engine, Timestamp) + Send>;

pub(crate) enum EngineInput {
    Topology(TopologyUpdate),
    /// The status of a remote target has changed.
    Target(TargetChange),
    /// The result of a screen capture.
    Screen(Box<ScreenEvidence>),
    /// Entries from a file that an agent keeps about itself.
    FileEvidence(Box<FileEvidence>),
    Event(Box<IncomingEvent>, oneshot::Sender<Result<EventReceipt, ApiError>>),
    /// Runs a function that reads the engine and changes nothing.
    Query(EngineQuery),
    SwitchAdapter(AdapterSwitch, oneshot::Sender<Result<AdapterList, ApiError>>),
    /// Which panes of a server its attached clients show.
    Visits(PaneVisits),
    /// A person has seen the result of an agent.
    MarkSeen(PaneRef, oneshot::Sender<Result<SeenReport, ApiError>>),
    /// Gives an agent a name.
    NameAgent(RuntimeId, String, oneshot::Sender<Result<(), ApiError>>),
    /// The progress of a text that agtmux submits to an agent. The engine replies when it has published the progress to
    /// clients.
    Submission(RuntimeId, SubmissionProgress, oneshot::Sender<()>),
    /// A hub subscribes to this host's evidence. The subscription ends when the `Arc` behind this reference is dropped.
    Subscribe(Weak<()>, oneshot::Sender<u64>),
    /// A hub requests the next batch of its subscription.
    NextBatch(u64, oneshot::Sender<EvidenceBatch>),
    /// A batch of evidence from a remote host.
    RemoteBatch(Box<RemoteBatch>, oneshot::Sender<()>),
    /// The panes of shared terminals have changed.
    Mirrors(MirrorPanes),
    /// The set of manifests has changed.
    SetRegistry(Arc<AgentRegistry>),
    /// Inputs for a task session. The engine replies when their effects are stored and published.
    Task(Box<TaskUpdate>, TaskReply),
    /// The engine replies when it has applied and published all earlier inputs.
    Flush(oneshot::Sender<()>),
}

pub(crate) struct Engine {
    clock: Clock,
    sleep_detector: SleepDetector,
    /// By how much the clock was set after the previous daemon stored its times and before this daemon started.
    step_at_start: SignedDuration,
    /// By how much the times in the store must still be moved, because the clock was set.
    unstored_step: SignedDuration,
    settings: config::StateConfig,
    fleet: Fleet,
    states: StateResolver,
    /// The pane of each runtime.
    runtime_panes: BTreeMap<RuntimeId, PaneKey>,
    /// The agents of remote hosts, by the runtime ids that this host uses for them.
    remote_agents: BTreeMap<RuntimeId, RemoteAgent>,
    host_limits: HostLimits,
    /// The hubs that read this host's evidence.
    subscribers: EvidenceSubscribers,
    ended_processes: RecentlyEnded,
    registry: Arc<AgentRegistry>,
    cursors: SourceCursors,
    memories: AdapterMemories,
    turn_starts: TurnStarts,
    submissions: Submissions,
    mirror_panes: MirrorPanes,
    disabled_adapters: BTreeSet<String>,
    recheck_hints: Arc<RecheckHints>,
    /// Events that wait until their runtime is known.
    unbound_events: UnboundEvents,
    /// When the engine next has work even if no input arrives, for example because a state changes as time passes.
    deadline: Timestamp,
    /// When the engine last ran a step.
    last_step_at: Timestamp,
    /// The number of the last logged input, and the number of the last input that is part of the newest checkpoint.
    last_input_seq: u64,
    checkpoint_seq: u64,
    purge_at: Timestamp,
    fleet_diff: FleetDiff,
    store: Arc<Store>,
    reader: rusqlite::Connection,
    /// How many times the database had been restored when this daemon last opened the reader.
    reader_restores: u64,
    store_error: StoreErrorNote,
    event_log: Arc<EventLog>,
    reserved_seq: u64,
    inputs: mpsc::Receiver<EngineInput>,
    submitted: broadcast::Sender<SubmittedPrompt>,
    task_session_changed: broadcast::Sender<TaskSessionKey>,
    task_sessions: Arc<TaskSessions>,
    /// The panes in which tasks were started, and their sessions.
    task_panes: BTreeMap<PaneKey, TaskSessionKey>,
}

/// The error of the last write to the store, for the health report. `None` if that write succeeded.
pub(crate) type StoreErrorNote = Arc<Mutex<Option<String>>>;

impl Engine {
    pub(crate) fn new(
        clock: Clock,
        settings: config::StateConfig,
        contents: StoreContents,
        store: Arc<Store>,
        store_error: StoreErrorNote,
        event_log: Arc<EventLog>,
        recheck_hints: Arc<RecheckHints>,
    ) -> Result<(Self, EngineHandle), StoreError> {
        let (inputs, input_receiver) = mpsc::channel(1024);
        let submitted = broadcast::Sender::new(SUBMITTED_CAPACITY);
        let task_session_changed = broadcast::Sender::new(TASK_SESSION_CAPACITY);
        let task_sessions = Arc::new(TaskSessions::new(contents.tasks));
        let reserved_seq = event_log.read().seq();
        let (reader_restores, reader) = (store.restores(), store.reader()?);
        let completed_for = SignedDuration::try_from(settings.completed_to_idle.0).unwrap_or(SignedDuration::MAX);
        let step_at_start = clock.take_step_since(contents.clock_anchor.as_ref(), contents.newest_input_at);
        let mut engine = Self {
            sleep_detector: SleepDetector::new(clock.clone()),
            step_at_start,
            unstored_step: SignedDuration::ZERO,
            settings,
            fleet: contents.fleet,
            states: contents.states.unwrap_or_else(|| StateResolver::new(completed_for)),
            runtime_panes: BTreeMap::new(),
            remote_agents: BTreeMap::new(),
            host_limits: HostLimits::default(),
            subscribers: EvidenceSubscribers::default(),
            ended_processes: RecentlyEnded::default(),
            registry: Arc::new(UserManifests::default().registry()),
            turn_starts: TurnStarts::default(),
            submissions: Submissions::default(),
            mirror_panes: MirrorPanes::default(),
            cursors: SourceCursors::new(contents.cursors),
            memories: AdapterMemories::new(contents.memories),
            disabled_adapters: contents.disabled_adapters,
            recheck_hints,
            unbound_events: UnboundEvents::new(contents.unbound_events),
            deadline: Timestamp::MIN,
            last_step_at: clock.now(),
            last_input_seq: contents.last_input_seq,
            checkpoint_seq: 0,
            purge_at: clock.now(),
            clock,
            fleet_diff: FleetDiff::default(),
            store,
            reader,
            reader_restores,
            store_error,
            event_log,
            reserved_seq,
            inputs: input_receiver,
            submitted: submitted.clone(),
            task_session_changed: task_session_changed.clone(),
            task_sessions: task_sessions.clone(),
            task_panes: BTreeMap::new(),
        };
        engine.states.set_completed_for(completed_for);
        for (key, server) in engine.fleet.servers() {
            for (id, runtime) in server.panes.iter().filter_map(|(id, pane)| Some((id, pane.runtime.as_ref()?))) {
                engine.runtime_panes.insert(runtime.id.clone(), PaneKey { server: key.clone(), pane: *id });
            }
        }
        let ingest_stats = Arc::default();
        Ok((engine, EngineHandle { inputs, submitted, task_session_changed, task_sessions, ingest_stats }))
    }

    /// Sets the registry with which the engine starts.
    pub(crate) fn with_registry(self, registry: Arc<AgentRegistry>) -> Self {
        Self { registry, ..self }
    }

    /// Runs until the last engine handle is dropped.
    pub(crate) async fn run(mut self) {
        self.reconcile_on_start().await;
        let mut batch = Vec::new();
        loop {
            self.deadline = self.next_deadline(self.last_step_at);
            let mut wake_at = self.clock.instant(self.deadline);
            // Without agents the engine need not notice a sleep, so the daemon needs no timer.
            let has_agents = !self.runtime_panes.is_empty();
            if has_agents {
                wake_at = wake_at.min(self.clock.next_beat(Instant::now()));
            }
            self.clock.plan_beat(has_agents.then_some(BEAT));
            tokio::select! {
                received = self.inputs.recv_many(&mut batch, MAX_BATCH) => if received == 0 { return },
                () = tokio::time::sleep_until(wake_at.into()) => {}
            }
            self.clock.plan_beat(has_agents.then_some(LONGEST_STEP));
            self.renew_reader();
            let mut step = self.begin_step();
            for input in batch.drain(..) {
                self.handle_input(input, &mut step);
            }
            self.apply_due_work(&mut step);
            self.finish(step).await;
        }
    }

    /// Opens the reader again if the database was restored, because the old reader still reads the removed file.
    fn renew_reader(&mut self) {
        let restores = self.store.restores();
        if restores != self.reader_restores
            && let Ok(reader) = self.store.reader()
        {
            (self.reader, self.reader_restores) = (reader, restores);
        }
    }

    /// Reconciles the stored fleet with the stored states, because the two may have been stored at different times.
    async fn reconcile_on_start(&mut self) {
        let mut step = self.begin_step();
        self.apply_stored_clock_step(&mut step);
        let orphans: Vec<RuntimeId> = self
            .states
            .runtimes()
            .map(|(id, _)| id)
            .filter(|id| !self.runtime_panes.contains_key(id))
            .cloned()
            .collect();
        for runtime in orphans {
            self.resolve(ResolverInput::Ended { runtime }, None, &mut step);
        }
        for (id, key) in self.runtime_panes.clone() {
            let Some(runtime) = self.fleet.pane(&key).and_then(|pane| pane.runtime.clone()) else { continue };
            if !self.states.has_runtime(&id) {
                self.resolve(started_input(&key, &runtime), None, &mut step);
            }
            self.note_unseen(&id);
            // Publish the state of every runtime once, because this daemon has just started.
            step.mark_pane_changed(&self.fleet, &key);
        }
        for (key, session) in self.task_sessions.all() {
            self.set_task_statuses(&key, &session, &mut step);
        }
        for input in self.states.due_inputs(step.now) {
            self.resolve(input, None, &mut step);
        }
        self.checkpoint(&mut step, false);
        self.finish(step).await;
    }

    fn handle_input(&mut self, input: EngineInput, step: &mut EngineStep) {
        match input {
            EngineInput::Topology(update) => self.apply_topology(update, step),
            EngineInput::Target(change) => step.targets.push(change),
            EngineInput::RemoteBatch(batch, done) => {
                self.apply_remote_batch(*batch, step);
                step.flush_replies.push(done);
            }
            EngineInput::Subscribe(alive, reply) => {
                let _ = reply.send(self.subscribers.add(alive));
            }
            EngineInput::NextBatch(id, reply) => self.request_batch(id, reply),
            EngineInput::Task(update, reply) => self.apply_task_update(*update, reply, step),
            EngineInput::Event(event, reply) => {
                let outcome = self.ingest(*event, step);
                step.receipts.push((reply, outcome));
            }
            EngineInput::Screen(evidence) => self.observe_screen(*evidence, step),
            EngineInput::FileEvidence(evidence) => self.reduce_file(*evidence, step),
            EngineInput::Query(query) => query(self, step.now),
            EngineInput::SwitchAdapter(switch, reply) => {
                let _ = reply.send(self.switch_adapter(&switch.name, switch.enabled, step));
            }
            EngineInput::Visits(visits) => self.apply_visits(&visits, step),
            EngineInput::MarkSeen(reference, reply) => {
                let _ = reply.send(self.mark_seen(&reference, step));
            }
            EngineInput::NameAgent(runtime, name, reply) => {
                let _ = reply.send(self.name_agent(&runtime, &name, step));
            }
            EngineInput::Submission(runtime, progress, done) => {
                self.apply_submission(&runtime, progress, step);
                step.flush_replies.push(done);
            }
            EngineInput::Mirrors(panes) => self.replace_mirror_panes(panes, step),
            EngineInput::SetRegistry(registry) => self.replace_registry(registry, step),
            EngineInput::Flush(done) => step.flush_replies.push(done),
        }
    }

    fn apply_topology(&mut self, update: TopologyUpdate, step: &mut EngineStep) {
        let delta = self.apply_to_fleet(update, step);
        // Several runtimes may have begun at once, and all of them must be known before events are bound.
        if has_started_runtime(&delta) {
            self.bind_unbound(step);
        }
        self.apply_task_changes(&delta, step);
        step.merge(delta);
    }

    fn apply_to_fleet(&mut self, update: TopologyUpdate, step: &mut EngineStep) -> FleetDelta {
        let delta = self.fleet.apply(update, step.now);
        for change in &delta.runtime_changes {
            self.apply_runtime_change(change, step);
        }
        delta
    }

    fn apply_runtime_change(&mut self, change: &RuntimeChange, step: &mut EngineStep) {
        match change {
            RuntimeChange::Started { pane, runtime } => {
                self.runtime_panes.insert(runtime.id.clone(), pane.clone());
                self.resolve(started_input(pane, runtime), None, step);
            }
            RuntimeChange::Ended { pane, runtime, process } => {
                self.resolve(ResolverInput::Ended { runtime: runtime.clone() }, None, step);
                self.cursors.forget(runtime);
                self.memories.forget(runtime);
                self.turn_starts.forget(runtime);
                self.submissions.forget(runtime);
                self.remote_agents.remove(runtime);
                self.runtime_panes.remove(runtime);
                // Ended processes are needed only to bind events, and events come only from local agents.
                if pane.server.target.is_local() {
                    self.ended_processes.record(pane.clone(), *process, step.now);
                }
            }
            RuntimeChange::Suspended { runtime, suspended } => {
                let input = ResolverInput::Suspended { runtime: runtime.clone(), suspended: *suspended };
                self.resolve(input, None, step);
            }
            RuntimeChange::Reachable { server, reachable } => {
                let input = ResolverInput::Reachable { server: server.clone(), reachable: *reachable };
                self.resolve(input, None, step);
            }
        }
    }

    /// Applies one input to the resolver. Logs the input together with the transitions that it caused.
    fn resolve(&mut self, input: ResolverInput, event_id: Option<String>, step: &mut EngineStep) {
        let transitions = self.states.apply(input.clone(), step.now);
        step.note_changed_evidence(&input);
        if let ResolverInput::Ended { runtime } | ResolverInput::Seen { runtime } = &input {
            self.note_unseen(runtime);
        }
        for transition in &transitions {
            self.turn_starts.record(transition, step.now);
            if self.submissions.record(transition, step.now) {
                self.publish_submission(&transition.runtime, step);
            }
            self.note_unseen(&transition.runtime);
            if let Some(pane) = self.runtime_panes.get(&transition.runtime) {
                step.mark_pane_changed(&self.fleet, pane);
                step.changed_states.insert(transition.runtime.clone());
            }
        }
        self.last_input_seq += 1;
        step.log_input(self.last_input_seq, event_id, input, transitions);
    }

    /// Does the work that is due. Checks the deadlines of states only when one of them may have passed, because the
    /// check goes through all agents.
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
        self.check_submissions(step);
        self.drop_expired(step);
        if self.last_input_seq >= self.checkpoint_seq + CHECKPOINT_EVERY {
            self.checkpoint(step, false);
        }
        if self.purge_at <= step.now {
            self.purge_at = step.now.checked_add(PURGE_EVERY).unwrap_or(Timestamp::MAX);
            if self.last_input_seq > self.checkpoint_seq {
                // A replay starts at a checkpoint, so inputs before this checkpoint can be purged.
                self.checkpoint(step, false);
            }
            let ago = |span: config::ConfigDuration| step.now.checked_sub(span.0).unwrap_or(Timestamp::MIN);
            step.changes.push(StoreChange::Purge {
                payloads_before: ago(self.settings.payload_retention),
                all_before: ago(self.settings.metadata_retention),
                max_bytes: self.settings.store_mib << 20,
            });
        }
    }

    /// The next deadline after `since`, the time of the last step. If the deadline passed while that step was being
    /// stored, the work is due at once.
    fn next_deadline(&self, since: Timestamp) -> Timestamp {
        let states = self.states.next_deadline(since);
        let bind_expiry = self.unbound_events.oldest().map(|event| self.expires_at(event));
        let others = [self.memories.next_due(), self.submissions.next_deadline()];
        [states, bind_expiry].into_iter().chain(others).flatten().fold(self.purge_at, Timestamp::min)
    }
}

fn has_started_runtime(delta: &FleetDelta) -> bool {
    delta.runtime_changes.iter().any(|change| matches!(change, RuntimeChange::Started { .. }))
}

fn started_input(pane: &PaneKey, runtime: &Runtime) -> ResolverInput {
    ResolverInput::Started {
        runtime: runtime.id.clone(),
        server: pane.server.clone(),
        agent_type: runtime.agent_type.clone(),
        suspended: runtime.suspended,
    }
}
